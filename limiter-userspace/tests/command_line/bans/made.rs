//! Bans: made, lifted and expired.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testbed::{Limiter, UdpSink};

use super::{CLIENT, NEIGHBOUR, is_banned, listed, pair, reported, start};
use crate::{
    BINARY, GOOD, assert_fails,
    pinned::{Pinned, assert_metric, metrics},
    streams::feed,
    succeed, text, wait_for,
};

#[test]
fn a_ban_holds_from_now_on_for_its_prefix_until_it_is_lifted() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    for (ban, inside, outside) in [
        ("198.51.100.7", "198.51.100.7", "198.51.100.8"),
        ("198.51.100.0/25", "198.51.100.127", "198.51.100.128"),
        ("fd78::7", "fd78::7", "fd78::8"),
        ("fd78:0:0:1::/64", "fd78:0:0:1:ffff::", "fd78:0:0:2::"),
    ] {
        ensure!(!is_banned(&pair, &limiter, inside)?);
        let shown = limiter.show(&["ban", ban, "--reason", "of the test"])?;
        ensure!(
            shown
                == format!(
                    "{ban} is banned until it is lifted\nbans end with the daemon: it has neither \
                     pins (run --pin) nor a state file\n"
                ),
            "{shown}"
        );
        ensure!(is_banned(&pair, &limiter, inside)?, "{inside} in {ban}");
        ensure!(
            !is_banned(&pair, &limiter, outside)?,
            "{outside} not in {ban}"
        );
        let explained = limiter.show(&["explain", inside])?;
        let line =
            format!("BANNED by an operator as {ban}, until it is lifted, 1 hit: of the test\n");
        ensure!(explained.contains(&line), "{explained}");
        let lifted = limiter.show(&["unban", ban])?;
        ensure!(
            lifted == format!("the ban of {ban} is lifted: operator\n"),
            "{lifted}"
        );
        ensure!(!is_banned(&pair, &limiter, inside)?);
        let again = limiter.show(&["unban", ban])?;
        ensure!(again == format!("{ban} had no ban of its own\n"), "{again}");
    }
    assert_lists_are_sorted_and_say_what_is_known(&limiter)?;

    // An address in a wider ban stays banned.
    limiter.show(&["unban", "--all"])?;
    limiter.show(&["ban", "198.51.100.0/24", "198.51.100.7"])?;
    let reported = "198.51.100.7 is still banned: it is in 198.51.100.0/24, which is banned";
    for _ in 0..2 {
        assert_fails(
            &mut limiter.command(&["unban", "198.51.100.7"]),
            &[reported],
        )?;
    }
    ensure!(is_banned(&pair, &limiter, "198.51.100.7")?);
    let shown = limiter.show(&["unban", "--all"])?;
    ensure!(shown == "1 ban lifted\n", "{shown}");
    ensure!(!is_banned(&pair, &limiter, "198.51.100.7")?);
    Ok(())
}

/// A program cannot correct its spelling: an error would leave the address unbanned.
#[test]
fn addresses_and_times_are_read_as_programs_write_them() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let reported = |arguments: &[&str], note: &str, response: &str| {
        let output = succeed(&mut limiter.command(arguments))?;
        ensure!(text(&output.stderr)? == format!("{note}\n"), "{output:?}");
        let answered = text(&output.stdout)?;
        ensure!(answered.contains(response), "{answered}");
        Ok(())
    };
    let mapped = &format!("::ffff:{CLIENT}");
    let is_read = &format!("warning: '{mapped}' is read as {CLIENT}");
    reported(&["reset", mapped], is_read, &format!("  {CLIENT}  "))?;
    reported(&["ban", mapped], is_read, &format!("{CLIENT} is banned"))?;
    ensure!(is_banned(&pair, &limiter, CLIENT)?);
    reported(&["explain", mapped], is_read, "BANNED by an operator")?;
    reported(&["bans", mapped], is_read, CLIENT)?;
    let object = json!({"level": "warning", "message": format!("'{mapped}' is read as {CLIENT}")});
    reported(&["bans", mapped, "--json"], &object.to_string(), CLIENT)?;
    let lifted = format!("the ban of {CLIENT} is lifted");
    reported(&["unban", mapped], is_read, &lifted)?;

    let time = "140737488355327s";
    let for_ever = format!("'{time}' is read as for ever, as are a hundred years and more");
    reported(
        &["ban", "172.20.5.7/16", "--for", time],
        &format!("warning: '172.20.5.7/16' is read as 172.20.0.0/16\nwarning: {for_ever}"),
        "172.20.0.0/16 is banned until it is lifted",
    )?;

    let decision = json!({
        "type": "ban", "scope": "Range", "value": "2001:db8:9:9::5/64", "duration": time,
    });
    for (input, item, prefix) in [
        (
            "fd77:0:1::5/48 140737488355327s\n",
            "line 1",
            "fd77:0:1::/48",
        ),
        (
            &json!([decision]).to_string(),
            "decision 1",
            "2001:db8:9:9::/64",
        ),
    ] {
        let output = feed(&mut limiter.command(&["ban", "--stdin"]), input)?;
        ensure!(output.status.success(), "{output:?}");
        let note = text(&output.stderr)?;
        let start = format!("{item}: '");
        ensure!(
            note.starts_with(&start) && note.ends_with(&format!("{for_ever}\n")),
            "{note}"
        );
        let bans = limiter.show(&["bans", "--json", prefix])?;
        let ends = [(prefix.to_owned(), json!(null))];
        assert_eq!(super::reported(&bans, "until")?, ends);
    }
    Ok(())
}

fn assert_lists_are_sorted_and_say_what_is_known(limiter: &Limiter) -> Result<()> {
    limiter.show(&[
        "ban",
        "2001:db8::/48",
        "203.0.113.9",
        "9.9.9.9",
        "--for",
        "1h",
    ])?;
    limiter.show(&["ban", "203.0.113.9", "--reason", "brute force: ssh"])?;
    let json = limiter.show(&["bans", "--json"])?;
    assert_eq!(
        reported(&json, "times")?,
        [
            ("9.9.9.9/32".to_owned(), json!(1)),
            ("203.0.113.9/32".to_owned(), json!(2)),
            ("2001:db8::/48".to_owned(), json!(1)),
        ]
    );
    assert_eq!(reported(&json, "reason")?[1].1, "brute force: ssh");
    ensure!(reported(&json, "until")?[1].1.is_null() && reported(&json, "until")?[0].1.is_string());
    let left = reported(&json, "ends_in_ns")?[0]
        .1
        .as_u64()
        .context("a number")?;
    ensure!(
        (3_500_000_000_000..=3_600_000_000_000).contains(&left),
        "{left}"
    );
    let shown = limiter.show(&["bans", "203.0.113.0/24"])?;
    let lines: Vec<_> = shown.lines().collect();
    ensure!(
        lines[0].starts_with("prefix       origin    since"),
        "{shown}"
    );
    ensure!(lines[1].starts_with("203.0.113.9  operator  20"), "{shown}");
    ensure!(
        lines[1].ends_with("–      2     0  brute force: ssh"),
        "{shown}"
    );
    ensure!(lines[3] == "1 ban of up to 524 288", "{shown}");
    let shown = limiter.show(&["bans", "--limit", "1"])?;
    ensure!(
        shown.ends_with("3 bans of up to 524 288, the first 1 shown\n"),
        "{shown}"
    );
    let shown = limiter.show(&["bans", "2001:db8::7"])?;
    ensure!(shown.contains("2001:db8::/48"), "{shown}");
    let status = limiter.status()?;
    assert_eq!(
        status["bans"],
        json!({"capacity": 524_288, "ipv4": 2, "ipv6": 1})
    );
    Ok(())
}

/// The kernel ends the ban.
#[test]
fn a_ban_ends_on_time_without_a_daemon() -> Result<()> {
    let mut pinned = Pinned::start(GOOD)?;
    let begun = Instant::now();
    let mut ban = pinned.with_pins("ban");
    let shown = succeed(ban.args([CLIENT, "--for", "15s"]))?;
    assert_eq!(
        text(&shown.stdout)?,
        format!("{CLIENT} is banned for 15 s\n")
    );
    pinned.limiter.kill()?;
    ensure!(is_banned(&pinned.pair, &pinned.limiter, CLIENT)?);
    ensure!(!is_banned(&pinned.pair, &pinned.limiter, NEIGHBOUR)?);
    let sink = UdpSink::new(&pinned.pair.server, 2)?;
    wait_for(|| {
        pinned.send(CLIENT, 1)?;
        Ok(sink.so_far().of(CLIENT.parse()?).packets > 0)
    })?;
    ensure!(
        begun.elapsed() >= Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    ensure!(listed(&pinned, "times")?.is_empty());
    // An ended ban is remembered for its own duration again, so the next one is number 2.
    let mut again = pinned.with_pins("ban");
    let shown = succeed(again.args([CLIENT, "--for", "1h"]))?;
    let expected = format!("{CLIENT} is banned for 1 h (its ban number 2)\n");
    assert_eq!(text(&shown.stdout)?, expected);
    Ok(())
}

#[test]
fn bans_are_changed_where_no_daemon_runs() -> Result<()> {
    let mut pinned = Pinned::start(GOOD)?;
    ensure!(pinned.limiter.terminate()?.success());
    succeed(pinned.with_pins("ban").args([CLIENT, "198.51.100.0/24"]))?;
    ensure!(is_banned(&pinned.pair, &pinned.limiter, CLIENT)?);
    let status = pinned.limiter.status()?;
    assert_eq!(status["bans"]["ipv4"], 2);
    assert_fails(
        pinned.with_pins("ban").arg("10.77.0.0/24"),
        &[
            "10.77.0.0/24 is not banned: 10.77.0.1 in it is an address of this host; --force bans \
           it all the same",
        ],
    )?;
    succeed(pinned.with_pins("unban").arg(CLIENT))?;
    ensure!(!is_banned(&pinned.pair, &pinned.limiter, CLIENT)?);
    pinned.limiter.restart()?;
    assert_eq!(
        listed(&pinned, "times")?,
        [("198.51.100.0/24".to_owned(), json!(1))]
    );
    let lifted = succeed(pinned.with_pins("unban").arg("--all"))?;
    assert_eq!(text(&lifted.stdout)?, "1 ban lifted\n");
    Ok(())
}

#[test]
fn metrics_tell_how_many() -> Result<()> {
    let pinned = Pinned::start(GOOD)?;
    succeed(
        pinned
            .with_pins("ban")
            .args([CLIENT, "2001:db8::/48", "--for", "1s"]),
    )?;
    succeed(pinned.with_pins("ban").args([NEIGHBOUR, "198.51.100.7"]))?;
    succeed(pinned.with_pins("unban").arg("198.51.100.7"))?;
    let server = &pinned.pair.server;
    let ended = "limiter_bans_ended_total{limit=\"\",origin=\"operator\"} 2";
    wait_for(|| Ok(metrics(server)?.lines().any(|line| line == ended)))?;
    for line in [
        "limiter_bans{family=\"ipv4\",origin=\"operator\"} 1",
        "limiter_bans{family=\"ipv6\",origin=\"operator\"} 0",
        "limiter_bans{family=\"ipv4\",origin=\"other\"} 0",
        "limiter_bans_capacity 524288",
        "limiter_bans_made_total{limit=\"\",origin=\"operator\"} 4",
        "limiter_bans_lifted_total{limit=\"\",origin=\"operator\"} 1",
        "limiter_bans_made_total{limit=\"PacketsPerIPAddress\",origin=\"automatic\"} 0",
    ] {
        assert_metric(server, line)?;
    }
    Ok(())
}

#[test]
fn wrong_usage() -> Result<()> {
    for (arguments, expected) in [
        (&["ban"][..], "<ADDRESS|PREFIX>"),
        (&["ban", "--stdin", "192.0.2.1"], "cannot be used with"),
        (&["ban", "::/0"], "it would ban everybody"),
        (&["ban", "192.0.2.1/0"], "it would ban everybody"),
        (&["ban", "::ffff:192.0.2.1/64"], "did you mean '192.0.2.1'?"),
        (&["ban", "192.0.2.1", "--for", "-5m"], "must be > 0"),
        (&["ban", "192.0.2.1", "--for", "10"], "its unit is missing"),
        (&["ban", "192.0.2.1", "--for", "-2"], "its unit is missing"),
        (&["ban", "192.0.2.1", "--for", "0s"], "must be > 0"),
        (
            &["ban", "192.0.2.1", "--reason", "a\nb"],
            "one line of text",
        ),
        (
            &["ban", "192.0.2.1", "--origin", "night shift"],
            "an origin has only a-z, 0-9, '-', '_' and '.'",
        ),
        (
            &["unban", "192.0.2.1", "--origin", ""],
            "1 to 64 characters",
        ),
        (&["unban", "--origin", "fail2ban"], "<ADDRESS|PREFIX|--all>"),
        (&["unban"], "<ADDRESS|PREFIX|--all>"),
        (&["unban", "--all", "192.0.2.1"], "cannot be used with"),
        (&["bans", "eth0"], "expected an address or a prefix"),
    ] {
        let output = Command::new(BINARY).args(arguments).output()?;
        let reported = text(&output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{reported}");
        ensure!(reported.contains(expected), "{reported}");
    }
    for command in [&["ban", "192.0.2.1"][..], &["unban", "--all"], &["bans"]] {
        assert_fails(
            Command::new(BINARY).args(command).args([
                "--socket",
                "/nonexistent/socket",
                "--pin",
                "/nonexistent/pins",
            ]),
            &["no limiter is running (no response at /nonexistent/socket): …"],
        )?;
    }
    Ok(())
}
