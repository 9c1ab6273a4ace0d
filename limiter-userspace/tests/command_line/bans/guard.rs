//! Addresses that the guard protects from bans by mistake.

use anyhow::{Result, ensure};
use testbed::SERVER_INTERFACE;

use super::{is_banned, pair, start};
use crate::{GOOD, assert_fails, succeed};

#[test]
fn those_without_whom_the_host_is_lost_are_not_banned() -> Result<()> {
    let pair = pair()?;
    let route = ["route", "add", "default", "via", "10.77.0.254", "dev"];
    pair.server
        .ip(&[&route[..], &[SERVER_INTERFACE]].concat())?;
    let limiter = start(&pair)?;
    for (ban, why) in [
        ("10.77.0.1", "it is an address of this host"),
        ("10.77.0.254", "it is a default gateway"),
        ("10.77.0.252/30", "10.77.0.254 in it is a default gateway"),
        ("fd77::1", "it is an address of this host"),
        ("127.0.0.1", "it is the loopback"),
        ("127.9.0.0/16", "it is the loopback"),
        ("::1", "it is the loopback"),
    ] {
        let reported = format!("{ban} is not banned: {why}; --force bans it all the same");
        // The command's other address is not banned either.
        let mut command = limiter.command(&["ban", "198.51.100.7", ban]);
        let rest = "nothing was changed: none of the others is banned either";
        assert_fails(&mut command, &[&reported, rest])?;
    }
    // Only the command's own environment tells of this SSH session.
    let mut command = limiter.command(&["ban", "203.0.113.9"]);
    command.env("SSH_CONNECTION", "203.0.113.9 50000 10.77.0.1 2222");
    let reported = "203.0.113.9 is not banned: it is the peer of an SSH session; --force bans it all \
                the same";
    assert_fails(&mut command, &[reported])?;
    ensure!(limiter.show(&["bans"])? == "0 bans of up to 524 288\n");

    succeed(&mut limiter.command(&["ban", "10.77.0.254", "--force"]))?;
    ensure!(is_banned(&pair, &limiter, "10.77.0.254")?);
    Ok(())
}

/// A list under `exclude` overrides bans.
#[test]
fn a_ban_of_an_excluded_source_has_no_effect() -> Result<()> {
    const OURS: &str = "lists: [{name: ours, cidr: [198.51.100.0/25]}]\nexclude: [ours]\n";
    let pair = pair()?;
    let limiter = start(&pair)?;
    limiter.configure(&format!("{OURS}{GOOD}"))?;
    limiter.show(&["reload"])?;
    for ban in ["198.51.100.7", "198.51.100.0/25"] {
        let reported = format!(
            "{ban} is not banned: the list ours excludes it, so that a ban has no effect; --force \
             keeps the ban for when it is not excluded any more"
        );
        assert_fails(&mut limiter.command(&["ban", ban]), &[&reported])?;
    }
    let shown = limiter.show(&["ban", "198.51.100.7", "--force"])?;
    ensure!(
        shown.starts_with(
            "198.51.100.7 is banned until it is lifted; this has no effect while the list ours \
             excludes it\n"
        ),
        "{shown}"
    );
    ensure!(!is_banned(&pair, &limiter, "198.51.100.7")?);
    let shown = limiter.show(&["bans"])?;
    ensure!(
        shown.contains("(no effect: excluded by the list ours)"),
        "{shown}"
    );
    // A ban of a range that is only partly excluded holds for the rest.
    limiter.show(&["ban", "198.51.100.0/24"])?;
    ensure!(!is_banned(&pair, &limiter, "198.51.100.8")?);
    ensure!(is_banned(&pair, &limiter, "198.51.100.200")?);
    let shown = limiter.show(&["explain", "198.51.100.8"])?;
    ensure!(
        shown.contains("excluded by the list ours: its ban as 198.51.100.0/24 by an operator"),
        "{shown}"
    );

    limiter.configure(GOOD)?;
    limiter.show(&["reload"])?;
    ensure!(is_banned(&pair, &limiter, "198.51.100.7")?);
    Ok(())
}
