//! `limiter reset` and `limiter refund`, as users see them.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, assert_fails, pair, text};

const CONFIGURATION: &str = "\
limits:
  PacketsPerIPAddress: {burst: 5, count: 1, period: 1h}
  PacketsPerIPv4Range: {burst: 1000, count: 1, period: 1h}
  PacketsPerSubscriber: {burst: 1000, count: 1, period: 1h}
  Everything: {id: total, cost: packets, burst: 1000, count: 1, period: 1h}
subscribers: {7: 10.78.1.0/25, 8: 10.78.1.128/25}
";

fn start(pair: &Pair, store: &str) -> Result<Limiter> {
    let configuration = format!("buckets: {{store: {store}}}\n{CONFIGURATION}");
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    Limiter::start(Path::new(BINARY), &pair.server, &configuration, &arguments)
}

/// Sends `count` packets from a source; returns how many passed.
fn passed(pair: &Pair, limiter: &Limiter, source: &str, count: usize) -> Result<u64> {
    let within = || {
        let status = limiter.status()?;
        status["reasons"]["within_limits"]
            .as_u64()
            .context("a count")
    };
    let before = within()?;
    let frame = Frame::new(source.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; count])?;
    Ok(within()? - before)
}

/// Returns the tokens left in each limit, from `limiter explain`.
fn remaining(limiter: &Limiter, source: &str) -> Result<Value> {
    let explanation = limiter.explain(source)?;
    let limits = explanation["limits"].as_array().context("a list")?;
    let pairs = limits.iter().map(|limit| {
        Some((
            limit["limit"].as_str()?.to_owned(),
            limit["remaining"].clone(),
        ))
    });
    Ok(Value::Object(
        pairs.collect::<Option<_>>().context("names")?,
    ))
}

fn give_back(limiter: &Limiter, arguments: &[&str]) -> Result<Value> {
    Ok(serde_json::from_str(
        &limiter.show(&[arguments, &["--json"]].concat())?,
    )?)
}

#[test]
fn a_reset_lets_an_address_pass_again_and_a_refund_so_many_packets() -> Result<()> {
    const SOURCE: &str = "10.77.0.2";
    for store in ["table", "hash"] {
        let pair = pair()?;
        let limiter = start(&pair, store)?;
        assert_eq!(passed(&pair, &limiter, SOURCE, 8)?, 5);

        let refund = [
            "refund",
            SOURCE,
            "--limit",
            "PacketsPerIPAddress",
            "--cost",
            "3",
        ];
        assert_eq!(
            give_back(&limiter, &refund)?,
            json!({"buckets": 1, "of_address": [{
                "limit": "PacketsPerIPAddress", "id": SOURCE, "interface": null, "strategy": "gcra", "burst": 5,
                "remaining_before": 0, "remaining": 3,
            }]}),
        );
        assert_eq!(remaining(&limiter, SOURCE)?["PacketsPerIPAddress"], 3);
        assert_eq!(passed(&pair, &limiter, SOURCE, 5)?, 3);

        let shown = limiter.show(&["reset", SOURCE])?;
        ensure!(shown.ends_with("\n\n3 buckets refilled\n"), "{shown}");
        ensure!(shown.contains("10.77.0.0/24"), "{shown}");
        assert_eq!(
            remaining(&limiter, SOURCE)?,
            json!({
                "PacketsPerIPAddress": 5, "PacketsPerIPv4Range": 1000, "Everything": 1000,
            }),
        );
        assert_eq!(passed(&pair, &limiter, SOURCE, 8)?, 5);

        // A refund never exceeds the spent tokens.
        let refund = [
            "refund",
            SOURCE,
            "--limit",
            "PacketsPerIPv4Range",
            "--cost",
            "700",
        ];
        let refunded = give_back(&limiter, &refund)?;
        assert_eq!(refunded["of_address"][0]["remaining_before"], 995);
        assert_eq!(refunded["of_address"][0]["remaining"], 1000);
        // Another limit's bucket is unchanged.
        assert_eq!(remaining(&limiter, SOURCE)?["PacketsPerIPAddress"], 0);
        assert_eq!(give_back(&limiter, &refund)?["buckets"], 0);
    }
    Ok(())
}

#[test]
fn prefixes_and_everybody() -> Result<()> {
    for store in ["table", "hash"] {
        let pair = pair()?;
        let limiter = start(&pair, store)?;
        let send = || -> Result<()> {
            for source in ["10.78.1.1", "10.78.1.2", "10.78.1.200", "10.78.2.1"] {
                assert_eq!(passed(&pair, &limiter, source, 5)?, 5);
            }
            Ok(())
        };
        let left = |source: &str| remaining(&limiter, source);
        send()?;
        // Two addresses, their /24, their subscriber, and the interface.
        assert_eq!(
            give_back(&limiter, &["reset", "10.78.1.0/25"])?["buckets"],
            5
        );
        assert_eq!(left("10.78.1.2")?["PacketsPerIPAddress"], 5);
        assert_eq!(left("10.78.1.200")?["PacketsPerIPAddress"], 0);
        assert_eq!(left("10.78.1.200")?["PacketsPerSubscriber"], 995);
        assert_eq!(left("10.78.1.1")?["PacketsPerSubscriber"], 1000);
        assert_eq!(left("10.78.2.1")?["PacketsPerIPv4Range"], 995);

        let reset = ["reset", "10.78.0.0/16", "--limit", "PacketsPerIPAddress"];
        assert_eq!(give_back(&limiter, &reset)?["buckets"], 2);
        let reset = ["reset", "10.78.0.0/16", "--limit", "PacketsPerSubscriber"];
        assert_eq!(give_back(&limiter, &reset)?["buckets"], 1);
        let reset = ["reset", "--all", "--limit", "PacketsPerIPv4Range"];
        assert_eq!(give_back(&limiter, &reset)?["buckets"], 1);

        send()?;
        // Four addresses, two /24, two subscribers and the interface.
        assert_eq!(limiter.show(&["reset", "--all"])?, "9 buckets refilled\n");
        assert_eq!(limiter.show(&["reset", "--all"])?, "0 buckets refilled\n");
        assert_eq!(left("10.78.1.1")?["PacketsPerIPAddress"], 5);
        send()?;
    }
    Ok(())
}

/// A limit may give each destination a bucket. Without a destination in the command, the host's own addresses are
/// meant.
#[test]
fn buckets_of_destinations() -> Result<()> {
    const SOURCE: &str = "10.77.0.2";
    const OWN: &str = "10.77.0.1";
    const ELSEWHERE: &str = "198.51.100.9";
    for store in ["table", "hash"] {
        let pair = pair()?;
        let configuration = format!(
            "buckets: {{store: {store}}}\n\
             limits: {{Each: {{id: destination, cost: packets, burst: 5, count: 1, period: 1h}}}}\n"
        );
        let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
        let limiter = Limiter::start(Path::new(BINARY), &pair.server, &configuration, &arguments)?;
        let send = |source: &str, destination: &str| -> Result<()> {
            let frame = Frame::new(source.parse()?, destination.parse()?).udp(1, 2, b"x")?;
            RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 3])?;
            Ok(())
        };
        let left = |arguments: &[&str]| -> Result<Value> {
            let arguments = [&["explain", SOURCE, "--json"], arguments].concat();
            let explained: Value = serde_json::from_str(&limiter.show(&arguments)?)?;
            Ok(json!([
                explained["limits"][0]["id"],
                explained["limits"][0]["remaining"]
            ]))
        };
        send(SOURCE, OWN)?;
        send("10.77.0.3", OWN)?;
        send(SOURCE, ELSEWHERE)?;
        assert_eq!(left(&[])?, json!([OWN, 0]));
        assert_eq!(left(&["--to", ELSEWHERE])?, json!([ELSEWHERE, 2]));

        assert_eq!(give_back(&limiter, &["reset", SOURCE])?["buckets"], 1);
        assert_eq!(left(&[])?, json!([OWN, 5]));
        let to_it = ["reset", SOURCE, "--to", ELSEWHERE];
        assert_eq!(
            give_back(&limiter, &to_it)?["of_address"][0]["id"],
            ELSEWHERE
        );
        assert_eq!(left(&["--to", ELSEWHERE])?, json!([ELSEWHERE, 5]));

        send(SOURCE, OWN)?;
        let refund = ["refund", SOURCE, "--limit", "Each", "--cost", "2"];
        assert_eq!(
            give_back(&limiter, &refund)?["of_address"][0]["remaining"],
            4
        );
        // Packets of the whole prefix share this bucket.
        assert_eq!(
            give_back(&limiter, &["reset", "10.77.0.0/24"])?["buckets"],
            1
        );
        assert_eq!(left(&[])?, json!([OWN, 5]));

        let check = |arguments: &[&str], expected: &str| {
            assert_fails(&mut limiter.command(arguments), &[expected])
        };
        check(
            &["explain", SOURCE, "--to", "2001:db8::1"],
            "no packet goes from 10.77.0.2 to 2001:db8::1: give two IPv4 or two IPv6 addresses",
        )?;
        check(
            &["reset", "10.77.0.0/24", "--to", OWN],
            "--to 10.77.0.1 is for one address: name an address in place of a prefix or --all",
        )?;
    }
    Ok(())
}

#[test]
fn what_cannot_be_given_back() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, "table")?;
    assert_eq!(passed(&pair, &limiter, "10.9.0.1", 5)?, 5);
    let check = |arguments: &[&str], expected: &str| {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .arg("--socket")
            .arg(limiter.socket());
        assert_fails(&mut command, &[expected])
    };
    check(
        &["reset", "10.9.0.1", "--limit", "PacketPerIPAddress"],
        "unknown limit 'PacketPerIPAddress', did you mean 'PacketsPerIPAddress'?",
    )?;
    check(
        &["refund", "10.9.0.1", "--limit", "x", "--cost", "1"],
        "unknown limit 'x', must be one of …",
    )?;
    check(
        &[
            "refund",
            "10.9.0.1",
            "--limit",
            "PacketsPerSubscriber",
            "--cost",
            "1",
        ],
        "PacketsPerSubscriber does not apply to 10.9.0.1: `limiter explain 10.9.0.1` shows the \
         limits that do",
    )?;
    check(
        &["reset", "10.0.0.0/8"],
        "10.0.0.0/8 has more than 65536 ids of PacketsPerIPAddress, too many to look up in the \
         table store: name a longer prefix, or another limit with --limit, or reset all with \
         --all",
    )?;
    // None of these commands changed anything.
    assert_eq!(remaining(&limiter, "10.9.0.1")?["PacketsPerIPAddress"], 0);
    let wide = ["reset", "10.0.0.0/8", "--limit", "PacketsPerIPv4Range"];
    assert_eq!(give_back(&limiter, &wide)?["buckets"], 1);
    drop(limiter);

    let only_bytes = "limits: {BytesPerIPv6Range: {burst: 2000, count: 1, period: 1s}}";
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let limiter = Limiter::start(Path::new(BINARY), &pair.server, only_bytes, &arguments)?;
    let mut command = Command::new(BINARY);
    command
        .args(["reset", "10.9.0.1", "--socket"])
        .arg(limiter.socket());
    assert_fails(
        &mut command,
        &["no limit applies to 10.9.0.1: there is nothing to give back"],
    )
}

#[test]
fn wrong_usage() -> Result<()> {
    for (arguments, expected) in [
        (&["reset"][..], "ADDRESS|PREFIX"),
        (
            &["reset", "--all", "--dns-name", "a"],
            "cannot be used with",
        ),
        (&["refund", "--limit", "x", "--cost", "1"], "<ADDRESS>"),
        (&["reset", "--all", "10.0.0.1"], "cannot be used with"),
        (&["reset", "eth0"], "expected an address or a prefix"),
        (&["refund", "10.0.0.1", "--cost", "1"], "--limit <NAME>"),
        (&["refund", "10.0.0.1", "--limit", "x"], "--cost <NUMBER>"),
        (
            &["refund", "10.0.0.1", "--limit", "x", "--cost", "0"],
            "0 is not in 1..",
        ),
    ] {
        let output = Command::new(BINARY).args(arguments).output()?;
        let reported = text(&output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{reported}");
        ensure!(reported.contains(expected), "{reported}");
    }
    Ok(())
}
