//! Sieves of a running limiter: busy sources, pressure, and drops.

use std::{
    io::{BufRead as _, BufReader},
    num::NonZeroU32,
    process::Stdio,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Load, RawSender, SERVER_INTERFACE};

use crate::{
    assert_fails, matches,
    pinned::{Pinned, assert_metric, metrics},
    succeed, wait_for,
};

/// A sieve of two lists for a limit of 1000 packets a second in total. The limit's own burst is 100
/// 000. An address leaves the entry list with its second packet.
pub(crate) const CONFIGURATION: &str = "\
limits:
  All: {id: total, cost: packets, burst: 100000, count: 1000, period: 1s, ip-rep: main}
ip-rep:
  - {name: main, buckets: 2, size: 4, percentage: 50}
  - {name: unused, pressure: {limit: All}}
";

const BUSY: &str = "10.77.0.2";
const QUIET: &str = "10.77.0.3";

fn frame(source: &str) -> Result<Vec<u8>> {
    Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")
}

/// Sends twice the limit's rate from `BUSY`, and calls `meanwhile` once there is pressure.
pub(crate) fn flood(pinned: &Pinned, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
    let sender = RawSender::new(&pinned.pair.client, CLIENT_INTERFACE)?;
    let progress = sender.progress();
    let frames = [frame(BUSY)?];
    let rate = NonZeroU32::new(2000).context("a rate")?;
    let load = Load::steady(rate, Duration::from_mins(2));
    thread::scope(|scope| {
        let sending = scope.spawn(move || sender.send(load, &frames));
        let done = wait_for(|| Ok(pressure(pinned)? == json!(2))).and_then(|()| meanwhile());
        progress.stop();
        sending
            .join()
            .map_err(|_| anyhow::anyhow!("the sender panicked"))??;
        done
    })
}

/// Returns the sieves from the daemon, as `limiter sieve` or `limiter sieve NAME` shows them.
fn sieves(pinned: &Pinned, name: Option<&str>) -> Result<Value> {
    let request = json!({"sieves": {"name": name}});
    pinned.limiter.ask(&request)
}

fn pressure(pinned: &Pinned) -> Result<Value> {
    Ok(sieves(pinned, Some("main"))?[0]["uses"][0]["pressure"].clone())
}

/// Returns the first row of `limiter top`.
fn top(pinned: &Pinned) -> Result<Value> {
    let mut command = pinned.limiter.command(&["top", "--json"]);
    let mut top = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let reported = BufReader::new(top.stdout.take().context("no stdout")?).read_line(&mut line);
    // The reader has closed the pipe, so the command ends.
    ensure!(top.wait()?.success());
    reported?;
    let document: Value = serde_json::from_str(&line)?;
    Ok(document["offenders"][0].clone())
}

/// Fails unless `BUSY`, dropped by the sieve `main` of this limit, is the first of the offenders.
fn assert_busy_is_first(pinned: &Pinned, limit: &str) -> Result<()> {
    let offenders = pinned.limiter.offenders()?;
    for row in [&offenders["offenders"][0], &top(pinned)?] {
        let found = [&row["limit"], &row["sieve"], &row["id"]];
        assert_eq!(found, [limit, "main", BUSY], "{row:#}");
        ensure!(row["drops"].as_u64() > Some(0), "{row:#}");
    }
    Ok(())
}

/// Returns the numbers of addresses in the lists of the sieve `main`.
fn entries(sieves: &Value) -> Vec<Option<u64>> {
    let lists = sieves[0]["lists"].as_array();
    let lists = lists.into_iter().flatten();
    lists.map(|list| list["entries"].as_u64()).collect()
}

#[test]
fn the_busy_are_dropped_under_pressure_and_the_quiet_are_not() -> Result<()> {
    let pinned = Pinned::start(CONFIGURATION)?;
    // Without pressure no address is scored.
    pinned.send(BUSY, 10)?;
    let quiet = sieves(&pinned, Some("main"))?;
    assert_eq!(entries(&quiet), [Some(0), Some(0), Some(0)]);
    assert_eq!(quiet[0]["uses"][0]["arrived_packets"], 10);

    flood(&pinned, || {
        pinned.send(QUIET, 1)?;
        wait_for(|| Ok(entries(&sieves(&pinned, None)?) == [Some(0), Some(1), Some(1)]))?;
        let all = sieves(&pinned, None)?;
        assert_eq!(entries(&all), [Some(0), Some(1), Some(1)], "{all:#}");
        let main = &all[0];
        assert_eq!(main["sieve"], "main");
        assert_eq!(main["entries"], 2);
        let used = &main["uses"][0];
        assert_eq!(used["limit"], "All");
        assert_eq!(used["limit_per_second"], 1000.0);
        let percent = used["percent"].as_f64().context("a percentage")?;
        // p = 2 begins at 83.3 %; the mean may still include the time before the flood.
        ensure!((250.0 / 3.0..300.0).contains(&percent), "{used}");
        assert_eq!(main["lists"][1]["busiest"][0]["id"], BUSY);
        assert_eq!(main["lists"][2]["busiest"][0]["id"], QUIET);
        assert_eq!(main["lists"][2]["busiest"][0]["count"], 1);
        assert_eq!(
            all[1],
            json!({
                "sieve": "unused", "buckets": 10, "size": 0, "percentage": 90.0, "entries": 0,
                "uses": [], "lists": [],
            })
        );

        // `limiter offenders` and `limiter top` show these drops, too.
        assert_busy_is_first(&pinned, "All")?;
        let shown = pinned.limiter.show(&["offenders", "--limit", "All"])?;
        ensure!(shown.contains("All (sieve main)"), "{shown}");
        let last = &pinned.limiter.explain(BUSY)?["last_drop"];
        assert_eq!(
            (&last["limit"], &last["sieve"]),
            (&json!("All"), &json!("main"))
        );
        let explained = pinned.limiter.show(&["explain", BUSY])?;
        ensure!(
            explained
                .lines()
                .any(|line| matches(line, "last drop: … by All (sieve main) …")),
            "{explained}"
        );

        // p = 1 rejects list 0 from 66.7 % on, p = 2 list 1 from 83.3 % on.
        let busy = pinned.limiter.show(&["explain", BUSY])?;
        ensure!(
            busy.contains("10.77.0.2 is in list 1 of main with "),
            "{busy}"
        );
        ensure!(
            busy.contains(": DROPPED now, while p > 1, that is from 83.3 % of the limit\n"),
            "{busy}"
        );
        let quiet = pinned.limiter.show(&["explain", QUIET])?;
        ensure!(
            quiet.contains("10.77.0.3 is in list 2 of main with 1 hit: never dropped by it\n"),
            "{quiet}"
        );
        let nobody = pinned.limiter.show(&["explain", "10.77.0.4"])?;
        ensure!(
            nobody.contains("main does not know it, and never drops newcomers\n"),
            "{nobody}"
        );
        let shown = pinned.limiter.show(&["sieve"])?;
        ensure!(shown.contains("lists 0 to 1"), "{shown}");
        ensure!(shown.ends_with("\nunused: off, its size is 0\n"), "{shown}");
        let status = pinned.limiter.show(&["status"])?;
        ensure!(
            status.contains("\nsieve main: 2 addresses known; All at "),
            "{status}"
        );
        ensure!(
            status.contains(": pressure 2, rejects lists 0 to 1\n"),
            "{status}"
        );
        Ok(())
    })?;

    // All packets of `BUSY` count, except its first hit and packets before the pressure.
    let status = pinned.limiter.status()?;
    let dropped = status["limits"]["All"]["dropped_packets"].as_u64();
    ensure!(dropped > Some(0), "{status:#}");
    assert_eq!(status["reasons"]["iprep"].as_u64(), dropped);
    assert_eq!(
        status["sieves"][0]["uses"][0]["iprep_packets"].as_u64(),
        dropped
    );
    // The packets of `QUIET` passed.
    assert_eq!(pinned.counted("over_limit")?, 0);

    // The pressure ends with the flood.
    wait_for(|| Ok(pressure(&pinned)? == Value::Null))?;
    let busy = pinned.limiter.show(&["explain", BUSY])?;
    ensure!(
        busy.contains(": dropped while p > 1, that is from 83.3 % of the limit\n"),
        "{busy}"
    );
    Ok(())
}

/// A sieve that no limit uses applies to all packets, even if no limit counts them.
#[test]
fn a_sieve_for_all_packets() -> Result<()> {
    let pinned = Pinned::start(
        "\
limits: {PacketsPerIPv6Range: {burst: 1, count: 1, period: 1h}}
ip-rep:
  - {name: main, buckets: 2, size: 4, percentage: 50, pressure: {packets-per-second: 1000}}
",
    )?;
    flood(&pinned, || {
        wait_for(|| Ok(pinned.counted("iprep")? > 0))?;
        let used = &sieves(&pinned, Some("main"))?[0]["uses"][0];
        assert_eq!(used["limit"], Value::Null);
        assert_eq!(used["cost"], "packets");

        // Its drops belong to no limit.
        assert_busy_is_first(&pinned, "*")?;
        let last = &pinned.limiter.explain(BUSY)?["last_drop"];
        assert_eq!(
            (&last["limit"], &last["sieve"]),
            (&json!("*"), &json!("main"))
        );
        assert_metric(
            &pinned.pair.server,
            r#"limiter_sieve_pressure{sieve="main",use="*"} 2"#,
        )
    })?;
    let dropped = pinned.counted("iprep")?;
    let shown = pinned.limiter.show(&["stats", "--flat"])?;
    let line = format!("limiter.sieve.main.use.*.iprep.packets {dropped}");
    ensure!(
        shown.lines().any(|reported| reported == line),
        "{line} is not in\n{shown}"
    );
    Ok(())
}

/// A packet passes if only an observing limit's sieve rejects it.
#[test]
fn a_limit_that_observes_only_counts_whom_its_sieve_rejects() -> Result<()> {
    let observing = CONFIGURATION.replace("period: 1s,", "period: 1s, mode: observe,");
    let pinned = Pinned::start(&observing)?;
    flood(&pinned, || {
        let would_drop = |status: &Value| status["limits"]["All"]["would_drop_packets"].as_u64();
        wait_for(|| Ok(would_drop(&pinned.limiter.status()?) > Some(0)))?;
        let busy = pinned.limiter.show(&["explain", BUSY])?;
        ensure!(
            busy.contains(" hits: would be dropped in mode enforce while p > 1, "),
            "{busy}"
        );
        let shown = pinned.limiter.show(&["sieve", "main"])?;
        ensure!(shown.contains("  would be lists 0 to 1  "), "{shown}");
        ensure!(!shown.contains("yes"), "{shown}");
        let status = pinned.limiter.show(&["status"])?;
        ensure!(
            status.contains(": pressure 2, would reject lists 0 to 1\n"),
            "{status}"
        );
        Ok(())
    })?;
    assert_eq!(pinned.counted("iprep")?, 0);
    Ok(())
}

#[test]
fn a_sieve_says_nothing_of_sources_it_never_scores() -> Result<()> {
    let excluding = CONFIGURATION.replace("ip-rep: main", "ip-rep: main, exclude: busy");
    let pinned = Pinned::start(&format!(
        "lists: [{{name: busy, cidr: {BUSY}}}, {{name: them, cidr: 192.0.2.0/24}}]\n\
         block: them\n{excluding}"
    ))?;
    for (address, is_reported) in [(BUSY, false), ("192.0.2.1", false), (QUIET, true)] {
        let shown = pinned.limiter.show(&["explain", address])?;
        assert_eq!(
            shown.contains("main does not know it"),
            is_reported,
            "{shown}"
        );
    }
    Ok(())
}

#[test]
fn scores_survive_reloads_and_restarts() -> Result<()> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    let known = [Some(0), Some(1), Some(1)];
    flood(&pinned, || {
        pinned.send(QUIET, 1)?;
        wait_for(|| Ok(entries(&sieves(&pinned, Some("main"))?) == known))
    })?;
    let arrived = |pinned: &Pinned| -> Result<Option<u64>> {
        Ok(sieves(pinned, Some("main"))?[0]["uses"][0]["arrived_packets"].as_u64())
    };
    let before = arrived(&pinned)?;

    // The same lists at another index: they move to other maps.
    let another = CONFIGURATION.replace(
        "ip-rep:\n",
        "ip-rep:\n  - {name: first, size: 11, pressure: {packets-per-second: 1000000}}\n",
    );
    pinned.reload(&another)?;
    assert_eq!(entries(&sieves(&pinned, Some("main"))?), known);
    assert_eq!(arrived(&pinned)?, before);
    let log = pinned.limiter.log()?;
    ensure!(
        log.contains("the sieve main has new maps with the addresses of the old ones"),
        "{log}"
    );
    // Other settings: the lists keep their maps.
    pinned.reload(&another.replace("percentage: 50", "percentage: 60, max-age: 5m"))?;
    assert_eq!(entries(&sieves(&pinned, Some("main"))?), known);

    // Without a daemon the pins show the entries, but no load is measured.
    pinned.limiter.kill()?;
    let command = |arguments: &[&str]| {
        let mut command = pinned.with_pins("sieve");
        command.args(arguments);
        command
    };
    let output = command(&["main", "--json"]).output()?;
    let reported: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(entries(&reported), known);
    assert_eq!(reported[0]["uses"][0]["percent"], Value::Null);
    assert_fails(
        &mut command(&["mian"]),
        &["unknown sieve 'mian', did you mean 'main'?"],
    )?;
    pinned.restart_with(&[])?;
    assert_eq!(entries(&sieves(&pinned, Some("main"))?), known);

    // Lists of another size start empty.
    pinned.reload(&CONFIGURATION.replace("size: 4", "size: 5"))?;
    assert_eq!(entries(&sieves(&pinned, Some("main"))?), [Some(0); 3]);
    let log = pinned.limiter.log()?;
    ensure!(
        log.contains("the sieve main starts empty: its lists have changed"),
        "{log}"
    );
    Ok(())
}

/// A reverted policy's sieve has its old entries. Its counters continue from the unconfirmed
/// policy's.
#[test]
fn no_counter_of_a_sieve_goes_back_with_a_policy() -> Result<()> {
    let pinned = Pinned::start_with(CONFIGURATION, &["-i", SERVER_INTERFACE, "--confirm", "8s"])?;
    pinned.limiter.show(&["confirm"])?;
    pinned.send(BUSY, 10)?;
    pinned.reload(&CONFIGURATION.replace("size: 4", "size: 5"))?;
    pinned.send(BUSY, 10)?;
    let main = || Ok::<_, anyhow::Error>(sieves(&pinned, Some("main"))?[0].clone());
    assert_eq!(main()?["size"], 5);
    assert_eq!(main()?["uses"][0]["arrived_packets"], 20);
    wait_for(|| Ok(main()?["size"] == 4))?;
    assert_eq!(main()?["uses"][0]["arrived_packets"], 20);
    Ok(())
}

#[test]
fn scores_are_in_the_state_file() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let state = directory.path().join("state");
    let configuration = format!("state: {}\n{CONFIGURATION}", state.display());
    let mut pinned = Pinned::start(&configuration)?;
    let known = [Some(0), Some(1), Some(1)];
    flood(&pinned, || {
        pinned.send(QUIET, 1)?;
        wait_for(|| Ok(entries(&sieves(&pinned, Some("main"))?) == known))
    })?;
    pinned.limiter.terminate()?;
    succeed(&mut pinned.with_pins("detach"))?;
    pinned.restart_with(&[])?;
    let reported = sieves(&pinned, Some("main"))?;
    assert_eq!(entries(&reported), known);
    assert_eq!(reported[0]["lists"][1]["busiest"][0]["id"], BUSY);
    let log = pinned.limiter.log()?;
    ensure!(
        log.contains("the sieve main has its saved addresses again (addresses: 2)"),
        "{log}"
    );
    Ok(())
}

/// The metric names that dashboards for Traffic Server's plugin use.
#[test]
fn metrics_have_the_plugin_s_names() -> Result<()> {
    let configuration = "\
limits:
  All: {id: total, cost: packets, burst: 3, count: 1, period: 1h, ip-rep: main,
        metrics: {prefix: ddos, tag: example.com}}
ip-rep: [{name: main, buckets: 2, size: 4}]
";
    let pinned = Pinned::start(configuration)?;
    pinned.send(BUSY, 5)?;
    wait_for(|| Ok(pinned.counted("over_limit")? + pinned.counted("iprep")? == 2))?;
    let shown = pinned.limiter.show(&["stats", "--flat"])?;
    for line in [
        "ddos.sni.example.com.expired 0",
        "ddos.sni.example.com.queued 0",
        "ddos.sni.example.com.rejected 2",
        "ddos.sni.example.com.resumed 0",
        "limiter.limit.All.passed.packets 3",
        "limiter.sieve.main.use.All.arrived.packets 5",
    ] {
        ensure!(
            shown.lines().any(|reported| reported == line),
            "{line} is not in\n{shown}"
        );
    }
    let json: Value = serde_json::from_str(&pinned.limiter.show(&["stats", "--flat", "--json"])?)?;
    assert_eq!(json["ddos.sni.example.com.rejected"], 2);

    let server = &pinned.pair.server;
    for line in [
        r#"limiter_limit_info{limit="All",strategy="gcra",prefix="ddos",tag="example.com"} 1"#,
        r#"limiter_sieve_packets_total{sieve="main",use="All",outcome="arrived"} 5"#,
    ] {
        assert_metric(server, line)?;
    }
    let reported = metrics(server)?;
    ensure!(
        reported.contains(r#"limiter_sieve_pressure{sieve="main",use="All"} "#),
        "{reported}"
    );
    Ok(())
}
