//! Bans read from a stream.

use std::{fmt::Write as _, io::Write as _, process::Output};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testbed::Limiter;

use super::{CLIENT, NEIGHBOUR, is_banned, listed, pair, reported, start};
use crate::{
    GOOD,
    pinned::Pinned,
    streams::{feed, spawn},
    text, wait_for,
};

fn stream(limiter: &Limiter, input: &str) -> Result<Output> {
    feed(&mut limiter.command(&["ban", "--stdin"]), input)
}

/// Returns the summary without the notice that bans end with the daemon.
fn summary(output: &Output) -> Result<&str> {
    text(&output.stdout)?.lines().next().context("a line")
}

#[test]
fn twenty_thousand_changes() -> Result<()> {
    const BANNED: u32 = 15_000;
    const LIFTED: u32 = 5_000;
    let pair = pair()?;
    let limiter = start(&pair)?;
    let address = |number: u32| format!("198.18.{}.{}", number / 256, number % 256);
    let mut input = String::new();
    for number in 0..BANNED {
        writeln!(input, "{} 1h flood {number}", address(number))?;
    }
    for number in 0..LIFTED {
        writeln!(input, "-{}", address(3 * number))?;
    }
    let output = stream(&limiter, &input)?;
    ensure!(output.status.success(), "{output:?}");
    assert_eq!(
        summary(&output)?,
        "banned 15 000, lifted 5 000, refused 0, bad 0"
    );
    let bans = reported(&limiter.show(&["bans", "--json"])?, "reason")?;
    let left = (0..BANNED).filter(|number| number % 3 != 0);
    let expected = left.map(|number| {
        let reason = format!("flood {number}");
        (format!("{}/32", address(number)), json!(reason))
    });
    ensure!(bans.into_iter().eq(expected));
    ensure!(is_banned(&pair, &limiter, &address(BANNED - 1))?);
    ensure!(!is_banned(&pair, &limiter, &address(3))?);
    assert_eq!(limiter.status()?["bans"]["ipv4"], 10_000);
    Ok(())
}

#[test]
fn bad_lines_are_told_and_the_others_applied() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let output = stream(
        &limiter,
        "# whom we know\n\n198.51.100.7\nnonsense\n198.51.100.0/23\n10.77.0.1 1h\n\
         2001:db8::/48 1x because\n203.0.113.9 1h because\nunban 198.51.100.9\n\u{1b}[31m\n",
    )?;
    assert_eq!(output.status.code(), Some(1));
    let counts = "banned 3, lifted 0, refused 1, bad 3, not banned before 1";
    assert_eq!(summary(&output)?, counts);
    let expected = "expected an address or a prefix, such as 192.0.2.1 or 2001:db8::/48";
    let mut lines: Vec<_> = text(&output.stderr)?.lines().collect();
    assert_eq!(lines.pop(), Some("not everything was applied"));
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            &format!("line 10: invalid '\\u{{1b}}[31m': {expected}"),
            &format!("line 4: invalid 'nonsense': {expected}"),
            "line 6: 10.77.0.1 is not banned: it is an address of this host; --force bans it all \
             the same",
            "line 7: invalid duration '1x': unknown unit 'x', must be one of ns, us, ms, s, m, h, d, w",
        ]
    );
    Ok(())
}

#[test]
fn what_comes_is_applied_while_more_is_waited_for() -> Result<()> {
    let mut pinned = Pinned::start(GOOD)?;
    let mut child = spawn(pinned.with_pins("ban").arg("--stdin"))?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    writeln!(stdin, "{CLIENT}")?;
    wait_for(|| Ok(listed(&pinned, "times")?.len() == 1))?;
    ensure!(is_banned(&pinned.pair, &pinned.limiter, CLIENT)?);
    // The stream goes on without a daemon, and does not prevent one from starting.
    ensure!(pinned.limiter.terminate()?.success());
    writeln!(stdin, "{NEIGHBOUR}\n-{CLIENT}")?;
    wait_for(|| is_banned(&pinned.pair, &pinned.limiter, NEIGHBOUR))?;
    pinned.limiter.restart()?;
    writeln!(stdin, "198.51.100.7")?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{output:?}");
    assert_eq!(
        text(&output.stdout)?,
        "banned 3, lifted 1, refused 0, bad 0\n"
    );
    let expected = [NEIGHBOUR, "198.51.100.7"].map(|address| (format!("{address}/32"), json!(1)));
    assert_eq!(listed(&pinned, "times")?, expected);
    Ok(())
}

/// CrowdSec sends one decision for each scenario that an address matches.
#[test]
fn the_longest_decision_about_an_address_holds() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let decision = |value: &str, duration: &str| {
        json!({
            "type": "ban", "scope": "Ip", "value": value, "duration": duration,
            "scenario": format!("for {duration}\n"),
        })
    };
    let pull = json!({
        "new": [
            decision(CLIENT, "4h"), decision(CLIENT, "10m"), decision(CLIENT, "4h"),
            decision(NEIGHBOUR, "10m"), decision(&format!("::ffff:{NEIGHBOUR}"), "4h"),
        ],
        "deleted": null,
    });
    let later = json!({"new": [decision(CLIENT, "1m")], "deleted": null});
    let output = stream(&limiter, &format!("{pull}\n{later}\n"))?;
    ensure!(output.status.success(), "{output:?}");
    let counts = "banned 2, lifted 0, refused 0, bad 0, skipped 4";
    assert_eq!(summary(&output)?, counts);
    let note = format!("decision 5: '::ffff:{NEIGHBOUR}' is read as {NEIGHBOUR}\n");
    assert_eq!(text(&output.stderr)?, note);
    let bans = limiter.show(&["bans", "--json"])?;
    for (field, value) in [("reason", json!("for 4h\\n")), ("times", json!(1))] {
        let expected = [CLIENT, NEIGHBOUR].map(|address| (format!("{address}/32"), value.clone()));
        assert_eq!(reported(&bans, field)?, expected);
    }
    // A person may shorten a ban.
    limiter.show(&["ban", CLIENT, "--origin", "crowdsec", "--for", "1m"])?;
    let bans = limiter.show(&["bans", CLIENT, "--json"])?;
    assert_eq!(reported(&bans, "times")?[0].1, 2);
    Ok(())
}

/// In the formats of its streaming API, of `cscli decisions list -o json` and of its custom
/// bouncer.
#[test]
fn decisions_of_crowdsec() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let decision = |value: &str, scope: &str, kind: &str, duration: &str| {
        json!({
            "id": 1, "origin": "crowdsec", "type": kind, "scope": scope, "value": value,
            "duration": duration, "scenario": "crowdsecurity/ssh-bf", "uuid": "x",
        })
    };
    let mut simulated = decision("198.51.100.11", "Ip", "ban", "4h");
    simulated["simulated"] = json!(true);
    let first = json!({
        "new": [
            decision("198.51.100.7", "Ip", "ban", "3h59m49.5s"),
            decision("2001:db8:7::/48", "Range", "ban", "167h"),
            decision("198.51.100.8", "Ip", "captcha", "4h"),
            decision("FR", "Country", "ban", "4h"),
            decision("198.51.100.9", "Ip", "ban", "-1m2s"),
            decision("198.51.100.10", "ip", "ban", "4h"),
            {"id": 7},
            simulated,
        ],
        "deleted": null,
    });
    let second = json!({"new": null, "deleted": [decision("198.51.100.10", "Ip", "ban", "-1s")]});
    let alerts = json!([{
        "id": 3, "scenario": "x",
        "decisions": [decision("203.0.113.9", "Ip", "ban", "4h")],
    }]);
    let mut one = decision("203.0.113.10", "Ip", "ban", "1h");
    one["action"] = json!("add");
    let mut other = one.clone();
    other["action"] = json!("del");
    let documents = format!("{first}\n{second}{alerts}\n{one}\n{other}\n{{}}\n");
    let output = stream(&limiter, &documents)?;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        summary(&output)?,
        "banned 5, lifted 2, refused 0, bad 2, skipped 4"
    );
    let told_of = text(&output.stderr)?;
    ensure!(
        told_of.contains("decision 7: a decision needs a value, a scope and a type"),
        "{told_of}"
    );
    let bans = reported(&limiter.show(&["bans", "--json"])?, "reason")?;
    let expected = ["198.51.100.7/32", "203.0.113.9/32", "2001:db8:7::/48"];
    assert_eq!(
        bans,
        expected.map(|prefix| (prefix.to_owned(), json!("crowdsecurity/ssh-bf")))
    );

    let output = stream(&limiter, "[{\"value\":")?;
    assert_eq!(output.status.code(), Some(1));
    let broken = "cannot read stdin any further: not CrowdSec decisions: ";
    ensure!(text(&output.stderr)?.starts_with(broken));
    Ok(())
}
