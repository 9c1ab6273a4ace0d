//! A reload replaces the policy in one step, or changes nothing.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Load, Namespace, Pair, RawSender, RawSink, SERVER_INTERFACE,
};

use crate::{
    BINARY, GOOD, assert_fails, pair,
    pinned::{Pinned, assert_metric, metrics, program, send},
    succeed, wait_for,
};

const CLIENT: &str = "10.77.0.2";

/// Starts an unpinned limiter on the configuration's interfaces.
fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    let arguments = ["--log-format", "human"];
    Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)
}

fn reload(limiter: &Limiter, configuration: &str) -> Result<()> {
    limiter.configure(configuration)?;
    limiter.show(&["reload"]).map(drop)
}

fn add_interface(namespace: &Namespace, name: &str) -> Result<()> {
    let peer = format!("{name}-peer");
    namespace
        .ip(&["link", "add", name, "type", "veth", "peer", "name", &peer])
        .map(drop)
}

/// Fails unless the client has these tokens left.
fn assert_remaining(pinned: &Pinned, expected: &[(&str, u64)]) -> Result<()> {
    let explanation = pinned.limiter.explain(CLIENT)?;
    let limits = explanation["limits"].as_array();
    let mut remaining: Vec<_> = limits
        .context("explain shows no limits")?
        .iter()
        .map(|limit| (limit["limit"].as_str(), limit["remaining"].as_u64()))
        .collect();
    remaining.sort_unstable();
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, left)| (Some(*name), Some(*left)))
        .collect();
    ensure!(
        remaining == expected,
        "{remaining:?} instead of {expected:?}"
    );
    Ok(())
}

#[test]
fn buckets_belong_to_names() -> Result<()> {
    let address = "PacketsPerIPAddress: {burst: 10, count: 1, period: 1h}";
    let rate = "burst: 20, count: 1, period: 1h";
    let own = |name| format!("{name}: {{id: ipAddress, cost: packets, {rate}}}");
    let configuration = |limits: &[&str]| format!("limits: {{{}}}\n", limits.join(", "));
    let (own, renamed) = (own("Own"), own("Renamed"));
    let range = "PacketsPerIPv4Range: {burst: 30, count: 1, period: 1h}";

    let pinned = Pinned::start(&configuration(&[address, &own]))?;
    pinned.send(CLIENT, 4)?;
    assert_remaining(&pinned, &[("Own", 16), ("PacketsPerIPAddress", 6)])?;
    // Another order, and one more limit in front.
    pinned.reload(&configuration(&[range, &own, address]))?;
    pinned.send(CLIENT, 1)?;
    let with_range = [
        ("Own", 15),
        ("PacketsPerIPAddress", 5),
        ("PacketsPerIPv4Range", 29),
    ];
    assert_remaining(&pinned, &with_range)?;
    // A removed limit charges nothing, and returns with its buckets.
    pinned.reload(&configuration(&[range, address]))?;
    pinned.send(CLIENT, 1)?;
    pinned.reload(&configuration(&[address, range, &own]))?;
    let without_own = [
        ("Own", 15),
        ("PacketsPerIPAddress", 4),
        ("PacketsPerIPv4Range", 28),
    ];
    assert_remaining(&pinned, &without_own)?;
    // A limit with another name has its own buckets.
    pinned.reload(&configuration(&[&renamed, address]))?;
    pinned.send(CLIENT, 5)?;
    assert_remaining(&pinned, &[("PacketsPerIPAddress", 0), ("Renamed", 16)])?;
    let status = pinned.limiter.status()?;
    // The daemon may also have noticed the changed file by itself.
    ensure!(
        status["policy"]["generation"].as_u64() >= Some(5),
        "{status:#}"
    );
    ensure!(status["limits"]["PacketsPerIPAddress"]["passed_packets"] == 10);
    ensure!(status["limits"]["PacketsPerIPAddress"]["dropped_packets"] == 1);
    Ok(())
}

/// Counts of another strategy have no meaning, so they are dropped; the reload says so.
#[test]
fn another_strategy_begins_anew() -> Result<()> {
    let configuration = |strategy: &str, count: u64| {
        format!(
            "limits:
  PacketsPerIPAddress: {{strategy: {strategy}, rate: {count}/hour; {}/day}}
  PacketsPerIPv4Range: {{rate: 30/hour}}
",
            2 * count
        )
    };
    let remaining = |pinned: &Pinned, expected: [u64; 3]| {
        assert_remaining(
            pinned,
            &[
                ("PacketsPerIPAddress", expected[0]),
                ("PacketsPerIPAddress#2", expected[1]),
                ("PacketsPerIPv4Range", expected[2]),
            ],
        )
    };
    let pinned = Pinned::start(&configuration("fixed-window", 10))?;
    pinned.send(CLIENT, 4)?;
    remaining(&pinned, [6, 16, 26])?;
    // With other rates of the same strategy, its counts stay.
    pinned.reload(&configuration("fixed-window", 12))?;
    remaining(&pinned, [8, 20, 26])?;
    pinned
        .limiter
        .configure(&configuration("sliding-window-counter", 12))?;
    let reported = pinned.limiter.show(&["reload"])?;
    let log = pinned.limiter.log()?;
    for limit in ["PacketsPerIPAddress", "PacketsPerIPAddress#2"] {
        let line = format!(
            "the strategy of {limit} has changed: its buckets begin anew, and earlier counts are \
             forgotten"
        );
        ensure!(reported.contains(&format!("{line}\n")), "{reported}");
        ensure!(log.contains(&format!("WARN {line}")), "{log}");
    }
    ensure!(!reported.contains("PacketsPerIPv4Range"), "{reported}");
    remaining(&pinned, [12, 24, 26])?;
    pinned.send(CLIENT, 5)?;
    remaining(&pinned, [7, 19, 21])
}

/// Fails unless a reload is refused with these lines and changes nothing.
fn assert_refused(limiter: &Limiter, pair: &Pair, expected: &[&str]) -> Result<()> {
    let before = limiter.status()?;
    let failed = before["daemon"]["reloads"]["failed"].as_u64();
    let failed = failed.context("no count of failures")? + 1;
    let program_before = program(&pair.server, SERVER_INTERFACE)?;
    assert_fails(&mut limiter.command(&["reload"]), expected)?;
    ensure!(program(&pair.server, SERVER_INTERFACE)? == program_before);
    let status = limiter.status()?;
    for same in ["policy", "interfaces", "limits", "buckets"] {
        ensure!(status[same] == before[same], "{status:#}");
    }
    let reloads = &status["daemon"]["reloads"];
    // The daemon may have seen the changed file before the command.
    let failed_now = reloads["failed"].as_u64().context("no count of failures")?;
    ensure!((failed..=failed + 1).contains(&failed_now), "{reloads}");
    let error = reloads["last"]["error"].as_str().unwrap_or_default();
    ensure!(error.lines().count() == expected.len(), "{error}");
    let log = limiter.log()?;
    let shown = limiter.show(&["status"])?;
    for line in error.lines() {
        ensure!(
            log.contains(&format!("ERROR not reloaded: {line}")),
            "{log}"
        );
        ensure!(shown.contains(line), "{shown}");
    }
    let total = format!(r#"limiter_reloads_total{{result="failure"}} {failed_now}"#);
    assert_metric(&pair.server, &total)?;
    assert_metric(&pair.server, "limiter_last_reload_failed 1")
}

#[test]
fn what_is_wrong_changes_nothing() -> Result<()> {
    let pair = pair()?;
    let configuration = format!("interfaces: [{SERVER_INTERFACE}]\n{GOOD}");
    let limiter = start(&pair, &configuration)?;

    limiter.configure(
        "limits:\n  PacketsPerIPAddress: {burst: 0, count: 1, period: 1s}\n  \
         BytesPerIPAddress: {burst: 9000, count: 1, period: never}\n",
    )?;
    let of_file = "…limiter.yaml:…";
    assert_refused(&limiter, &pair, &[of_file, of_file])?;
    limiter.configure("")?;
    assert_refused(&limiter, &pair, &["…limiter.yaml…"])?;
    fs::remove_file(limiter.configuration())?;
    assert_refused(&limiter, &pair, &["…limiter.yaml…"])?;
    limiter.configure(GOOD)?;
    assert_refused(&limiter, &pair, &["no interface to attach to: …"])?;

    add_interface(&pair.server, "taken0")?;
    let other = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        GOOD,
        &["-i", "taken0", "--metrics", "off"],
    )?;
    limiter.configure(&format!("interfaces: [{SERVER_INTERFACE}, taken0]\n{GOOD}"))?;
    assert_refused(
        &limiter,
        &pair,
        &[
            "taken0 already has the XDP program 'limiter' (id …), and an interface runs only \
             one, in any mode: another limiter holds it: `limiter detach` …",
        ],
    )?;
    ensure!(other.stop()?.success());

    reload(&limiter, &configuration)?;
    // The daemon may have seen the changed file before the command.
    let reloads = &limiter.status()?["daemon"]["reloads"];
    let succeeded = reloads["succeeded"].as_u64().context("no count")?;
    ensure!((1..=2).contains(&succeeded), "{reloads}");
    let total = format!(r#"limiter_reloads_total{{result="success"}} {succeeded}"#);
    assert_metric(&pair.server, &total)?;
    assert_metric(&pair.server, "limiter_last_reload_failed 0")?;
    let shown = limiter.show(&["status"])?;
    ensure!(!shown.contains("FAILED"), "{shown}");
    Ok(())
}

/// The kernel refuses the last step: nothing of the prepared policy is left, with either store.
#[test]
fn an_interface_that_refuses() -> Result<()> {
    let on = |names: &str| format!("interfaces: [{names}]\n{GOOD}");
    let pinned = Pinned::start_with(&on(SERVER_INTERFACE), &["--mode", "native"])?;
    let files = pinned.pins.files()?;
    for store in ["", "buckets: {store: hash}\n"] {
        let configuration = format!("{store}{}", on("server0, lo"));
        pinned.limiter.configure(&configuration)?;
        assert_refused(
            &pinned.limiter,
            &pinned.pair,
            &["lo cannot run XDP in native mode (…"],
        )?;
        ensure!(pinned.pins.files()? == files);
    }
    Ok(())
}

#[test]
fn the_response_in_json() -> Result<()> {
    let pinned = Pinned::start(GOOD)?;
    let output = succeed(&mut pinned.limiter.command(&["reload", "--json"]))?;
    let reloaded: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(
        reloaded
            == serde_json::json!({
                "generation": 2,
                "limits": 1,
                "overrides": 0,
                "waiting_for": [],
                "begun_anew": [],
                "after_restart": [],
                "confirm_within_ns": null,
            }),
        "{reloaded}"
    );
    Ok(())
}

/// Requests during a reload share the next reload.
#[test]
fn many_at_once() -> Result<()> {
    const MANY: usize = 60;
    let pinned = Pinned::start(GOOD)?;
    let generation = || -> Result<u64> {
        let generation = pinned.limiter.status()?["policy"]["generation"].as_u64();
        generation.context("a number")
    };
    let before = generation()?;
    // Hold the daemon until all requests are sent.
    pinned.limiter.signal(Signal::SIGSTOP)?;
    let asked: Vec<_> = (0..MANY)
        .map(|_| {
            let mut stream = UnixStream::connect(pinned.limiter.socket())?;
            stream.write_all(b"{\"version\":4,\"body\":{\"reload\":null}}\n")?;
            Ok(stream)
        })
        .collect::<Result<_>>()?;
    pinned.limiter.signal(Signal::SIGCONT)?;
    for mut stream in asked {
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        ensure!(response.contains("{\"ok\":"), "{response}");
    }
    let reloads = generation()? - before;
    ensure!((1..10).contains(&reloads), "{reloads} reloads");
    Ok(())
}

#[test]
fn without_descriptors() -> Result<()> {
    let pinned = Pinned::start(GOOD)?;
    let limit = |most: &str| {
        let mut command = Command::new("prlimit");
        let process = format!("--pid={}", pinned.limiter.id());
        succeed(command.args([&process, &format!("--nofile={most}:")])).map(drop)
    };
    // Open descriptors stay open.
    limit("8")?;
    let reported = [
        "the daemon needs to open more files than it may (RLIMIT_NOFILE is 8): raise LimitNOFILE in its \
         unit, or enter `prlimit --pid=… --nofile=16384`",
    ];
    let begun = Instant::now();
    assert_fails(&mut pinned.limiter.command(&["reload"]), &reported)?;
    let took = begun.elapsed();
    ensure!(took < Duration::from_secs(10), "it took {took:?}");
    limit("16384")?;
    pinned.limiter.show(&["reload"]).map(drop)
}

#[test]
fn at_a_signal() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, &format!("interfaces: [{SERVER_INTERFACE}]\n{GOOD}"))?;
    let reloads =
        |of: &str| -> Result<Value> { Ok(limiter.status()?["daemon"]["reloads"][of].clone()) };
    limiter.signal(Signal::SIGHUP)?;
    wait_for(|| Ok(reloads("succeeded")? == 1))?;
    limiter.configure("limits: nonsense\n")?;
    limiter.signal(Signal::SIGHUP)?;
    wait_for(|| Ok(reloads("failed")? == 1))?;
    ensure!(limiter.status()?["policy"]["generation"] == 2);
    Ok(())
}

#[test]
fn interfaces_are_added_and_removed() -> Result<()> {
    let pair = pair()?;
    for name in ["extra0", "extra1"] {
        add_interface(&pair.server, name)?;
    }
    let on = |names: &str| format!("interfaces: [{names}]\n{GOOD}");
    let has_program = |name| Ok::<_, anyhow::Error>(program(&pair.server, name)?.is_some());
    let limiter = start(&pair, &on("server0"))?;
    send(&pair, CLIENT, 3)?;
    reload(&limiter, &on("extra0, server0, later0"))?;
    ensure!(has_program("extra0")? && has_program("server0")? && !has_program("extra1")?);
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("later0: NOT attached: waiting for it to appear"),
        "{shown}"
    );
    let counted =
        r#"limiter_packets_total{interface="server0",verdict="pass",reason="within_limits"} 3"#;
    assert_metric(&pair.server, counted)?;

    // An interface that reuses a removed one's number begins with zero counts.
    reload(&limiter, &on("extra0"))?;
    ensure!(has_program("extra0")? && !has_program("server0")?);
    reload(&limiter, &on("extra0, extra1"))?;
    ensure!(has_program("extra0")? && has_program("extra1")?);
    let mut reported = String::new();
    wait_for(|| {
        reported = metrics(&pair.server)?;
        Ok(!reported.contains(r#"interface="server0""#)
            && reported.contains(r#"interface="extra1""#))
    })
    .with_context(|| reported.clone())?;
    ensure!(
        !reported.contains(r#"reason="within_limits"} 3"#),
        "{reported}"
    );
    Ok(())
}

/// An interface that reuses a removed one's number does not inherit its debts.
#[test]
fn a_budget_of_an_interface_goes_with_it() -> Result<()> {
    let pair = pair()?;
    for name in ["extra0", "extra1"] {
        add_interface(&pair.server, name)?;
    }
    let limit = "{id: total, cost: packets, burst: 10, count: 1, period: 1h}";
    for store in ["table", "hash"] {
        let on = |names: &str| {
            format!(
                "interfaces: [{names}]\nbuckets: {{store: {store}}}\nlimits: {{All: {limit}}}\n"
            )
        };
        let limiter = start(&pair, &on("server0"))?;
        let remaining = |index: usize| -> Result<Value> {
            Ok(limiter.explain(CLIENT)?["limits"][index].clone())
        };
        send(&pair, CLIENT, 3)?;
        wait_for(|| Ok(remaining(0)?["remaining"] == 7))?;
        reload(&limiter, &on("extra0"))?;
        reload(&limiter, &on("extra0, extra1"))?;
        let taken_over = remaining(1)?;
        ensure!(
            taken_over["id"] == "extra1" && taken_over["remaining"] == 10,
            "{store}: {taken_over:#}"
        );
    }
    Ok(())
}

#[test]
fn interfaces_of_the_command_line_stay() -> Result<()> {
    let pair = pair()?;
    add_interface(&pair.server, "extra0")?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        GOOD,
        &["-i", SERVER_INTERFACE],
    )?;
    reload(&limiter, &format!("interfaces: [extra0]\n{GOOD}"))?;
    let status = limiter.status()?;
    let interfaces = status["interfaces"].as_array();
    ensure!(
        matches!(&interfaces.context("status shows no interfaces")?[..], [only] if only["name"] == "server0"),
        "{status:#}"
    );
    ensure!(program(&pair.server, "extra0")?.is_none());
    Ok(())
}

/// Each of two policies passes its first tokens and then drops every packet. While they alternate,
/// a packet is either among a policy's first tokens, or dropped by that policy.
#[test]
fn no_packet_is_judged_by_a_mixture() -> Result<()> {
    const TOKENS: u64 = 7;
    let limit = format!("{{id: ipAddress, cost: packets, burst: {TOKENS}, count: 1, period: 1h}}");
    let policies = ["Second", "First"].map(|name| format!("limits: {{{name}: {limit}}}\n"));
    let pinned = Pinned::start(&policies[1])?;
    let sink = RawSink::new(&pinned.pair.server, SERVER_INTERFACE)?;
    let sender = RawSender::new(&pinned.pair.client, CLIENT_INTERFACE)?;
    let progress = sender.progress();
    let frame = Frame::new(CLIENT.parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    let load = Load::steady(2_000.try_into()?, Duration::from_mins(2));
    let sending = thread::spawn(move || sender.send(load, &[frame]));
    let reloaded = policies.iter().cycle().take(12).try_for_each(|policy| {
        let before = progress.sent();
        wait_for(|| Ok(progress.sent() >= before + 20))?;
        pinned.reload(policy)
    });
    progress.stop();
    let sent = sending.join().expect("the sender does not panic")?.packets;
    reloaded?;

    wait_for(|| Ok(pinned.pair.received()? >= sent))?;
    let status = pinned.limiter.status()?;
    ensure!(sink.finish()?.packets() == 2 * TOKENS);
    ensure!(
        status["reasons"]["within_limits"] == 2 * TOKENS,
        "{status:#}"
    );
    ensure!(
        status["reasons"]["over_limit"] == sent - 2 * TOKENS,
        "{status:#}"
    );
    // A limit's drops are shown only while it is in force.
    let first = status["limits"]["First"]["dropped_packets"].as_u64();
    pinned.reload(&policies[0])?;
    let status = pinned.limiter.status()?;
    let second = status["limits"]["Second"]["dropped_packets"].as_u64();
    let [first, second] = [first, second].map(Option::unwrap_or_default);
    ensure!(first > 0 && second > 0);
    ensure!(
        first + second + 2 * TOKENS == sent,
        "{first} and {second} dropped, of {sent}"
    );
    Ok(())
}

/// The reload names the settings that it cannot change, and keeps their old values.
#[test]
fn what_takes_a_restart() -> Result<()> {
    let pinned = Pinned::start(GOOD)?;
    pinned
        .limiter
        .configure(&format!("mode: generic\nstate: kept\n{GOOD}"))?;
    let reported = pinned.limiter.show(&["reload"])?;
    for line in [
        "only a restart changes `mode`: native on server0 → generic",
        "only a restart changes `state`: none → …",
    ] {
        let mut lines = reported.lines();
        ensure!(
            lines.any(|found| crate::matches(found, line)),
            "{line} is not in\n{reported}"
        );
    }
    let status = pinned.limiter.status()?;
    ensure!(status["interfaces"][0]["mode"] == "native", "{status:#}");
    Ok(())
}
