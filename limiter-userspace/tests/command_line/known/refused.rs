//! Prefixes that `limiter trust` refuses, and daemons without known sources.

use anyhow::Result;
use testbed::Limiter;

use super::{CONFIGURATION, is_trusted, start};
use crate::{GOOD, assert_fails};

#[track_caller]
fn fails(limiter: &Limiter, arguments: &[&str], expected: &[&str]) -> Result<()> {
    assert_fails(&mut limiter.command(arguments), expected)
}

#[test]
fn prefixes_of_too_many_sources() -> Result<()> {
    let large = CONFIGURATION.replace("capacity: 4096", "capacity: 100000");
    let (_pair, limiter) = start(&large)?;
    let remedy = "cannot be trusted: put it in a list that proves (`standing: {proven: [LIST]}`)";
    for (prefix, sources) in [
        ("198.18.0.0/15", "131 072"),
        ("0.0.0.0/0", "4 294 967 296"),
        ("2001:db8::/47", "131 072"),
    ] {
        let reported = format!(
            "{prefix} is not trusted: it has {sources} sources, and a prefix of more than 65 \
             536 {remedy}"
        );
        fails(&limiter, &["trust", prefix], &[&reported])?;
        // No notice that known sources end with the daemon, because no source was added.
        let output = limiter.command(&["trust", prefix]).output()?;
        assert_eq!(String::from_utf8(output.stdout)?, "");
    }
    for (prefix, last) in [
        ("198.18.0.0/16", "198.18.255.255"),
        ("2001:db8:1::/48", "2001:db8:1:ffff::1"),
    ] {
        // A few sources may find no room: five share a bucket of the table that has four slots.
        let output = limiter.command(&["trust", prefix]).output()?;
        let reported = String::from_utf8(output.stdout)?;
        assert!(
            reported.starts_with(&format!("{prefix} is proven for 30 days: 65 ")),
            "{reported}"
        );
        assert!(is_trusted(&limiter, last)?, "{last}");
    }
    let reported = "::1 is not trusted: no packet has such a source";
    fails(&limiter, &["trust", "::1"], &[reported])
}

/// One prefix cannot fill a small table, and the command says when it is full.
#[test]
fn more_than_there_is_room_for() -> Result<()> {
    let small = CONFIGURATION.replace("capacity: 4096", "capacity: 1024");
    let (_pair, limiter) = start(&small)?;
    let reported = "198.18.0.0/21 is not trusted: it has 2 048 sources, and a prefix of more than 1 \
                024 cannot be trusted: …";
    fails(&limiter, &["trust", "198.18.0.0/21"], &[reported])?;
    let prefixes: Vec<_> = (0..5)
        .map(|number| format!("198.18.{}.0/22", 4 * number))
        .collect();
    let mut know = limiter.command(&["trust"]);
    know.args(&prefixes);
    let output = know.output()?;
    let reported = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(1), "{reported}");
    let remedy = "of its sources beside other trusted sources; raise `standing: {capacity: …}`";
    assert!(reported.trim_end().ends_with(remedy), "{reported}");
    Ok(())
}

#[test]
fn where_no_limit_asks() -> Result<()> {
    let (_pair, limiter) = start(GOOD)?;
    let reported = "no limit uses the standing of sources, so none is known: give one a `reserve`, or \
                `match: {standing: […]}`";
    for arguments in [
        &["trust", "192.0.2.1"][..],
        &["untrust", "192.0.2.1"],
        &["trusted"],
        &["trusted", "192.0.2.1"],
    ] {
        fails(&limiter, arguments, &[reported])?;
    }
    Ok(())
}
