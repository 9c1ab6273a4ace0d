//! The output of commands about lists and addresses on them.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Feeds, GOOD};
use crate::{BINARY, assert_fails, matches, pinned::Pinned, succeed, text};

const CONFIGURATION: &str = "
lists:
  - {name: us, cidr: [192.0.2.0/28, '2001:db8::/64']}
  - {name: drop, cidr: [192.0.2.0/24, 198.51.100.1], file: feed}
  - {name: scanners, cidr: 198.51.100.7}
exclude: us
block: drop
limits:
  Web: {id: ipAddress, cost: packets, burst: 5, count: 1, period: 1s, block: scanners}
";

/// Runs `limiter lists` on a configuration, without a daemon.
#[track_caller]
fn check_lists(arguments: &[&str], expected: &str) -> Result<()> {
    let feeds = Feeds::new()?;
    fs::write(feeds.path("limiter.yaml"), CONFIGURATION)?;
    fs::write(feeds.path("feed"), "203.0.113.0/24 ; SBL1\n")?;
    let mut command = std::process::Command::new(BINARY);
    let command = command
        .arg("lists")
        .args(arguments)
        .arg("-c")
        .arg(feeds.path("limiter.yaml"));
    let output = succeed(command)?;
    let reported = text(&output.stdout)?;
    // Column widths depend on the files' paths.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let same = reported.lines().count() == expected.lines().count()
        && reported
            .lines()
            .zip(expected.lines())
            .all(|(line, pattern)| matches(&words(line), &words(pattern)));
    ensure!(same, "{arguments:?} says\n{reported}");
    Ok(())
}

#[test]
fn lists_of_a_configuration() -> Result<()> {
    check_lists(
        &[],
        "list      IPv4  IPv6  used by       files       age  max-age  bad lines  state
us           1     1  exclude       –             –        –          0  ok
drop         3     0  block         …/feed  …        –          0  ok
scanners     1     0  limits.Web.block  –             –        –          0  ok",
    )?;
    check_lists(&["test", "203.0.114.1"], "203.0.114.1 is on no list")?;
    check_lists(
        &["test", "203.0.113.9"],
        "203.0.113.9 is on 1 list
list  has             used by
drop  203.0.113.0/24  block
blocked by list drop: every packet is dropped",
    )?;
    check_lists(
        &["test", "::ffff:203.0.113.9"],
        "203.0.113.9 is on 1 list
list  has             used by
drop  203.0.113.0/24  block
blocked by list drop: every packet is dropped",
    )?;
    check_lists(
        &["test", "192.0.2.7/24"],
        "192.0.2.0/24 is on 2 lists
list  has                           used by
us    192.0.2.0/28, a part of it    exclude
drop  192.0.2.0/24                  block
some of it is excluded by list us: never limited, blocked or banned
some of it is blocked by list drop: every packet is dropped",
    )?;
    check_lists(
        &["test", "198.51.100.7"],
        "198.51.100.7 is on 1 list
list      has           used by
scanners  198.51.100.7  limits.Web.block
blocked by Web: it blocks list scanners; every packet that it counts is dropped",
    )
}

#[test]
fn lists_that_cannot_be_tested() -> Result<()> {
    for (asked, reported) in [
        (
            "192.0.2.7/33",
            "the prefix length of an IPv4 address is at most 32",
        ),
        ("example.com", "expected an address or a prefix, …"),
    ] {
        let output = std::process::Command::new(BINARY)
            .args(["lists", "test", asked])
            .output()?;
        assert_eq!(output.status.code(), Some(2));
        let said = text(&output.stderr)?;
        let first = said.lines().next().unwrap_or_default();
        let pattern = format!("error: invalid value '{asked}' for '<ADDRESS|PREFIX>': {reported}");
        ensure!(matches(first, &pattern), "{said}");
    }
    let scene = crate::Scene::new()?;
    let mut command = std::process::Command::new(BINARY);
    command.args(["lists", "--socket"]).arg(scene.socket());
    command.arg("--pin").arg(scene.path("nothing"));
    assert_fails(&mut command, &["no limiter is running …"])
}

#[test]
fn what_is_told_of_an_address_in_force() -> Result<()> {
    let configuration = CONFIGURATION.replace(", file: feed", "");
    let mut pinned = Pinned::start(&configuration)?;
    let reported = |pinned: &Pinned, address: &str| -> Result<String> {
        let mut command = pinned.with_pins("explain");
        let output = succeed(command.arg(address))?;
        // After the first line, a summary.
        let (_, reported) = text(&output.stdout)?.split_once('\n').context("one line")?;
        Ok(reported.trim_end().to_owned())
    };
    for round in ["with a daemon", "with pins alone"] {
        let explained = reported(&pinned, "192.0.2.7")?;
        let excluded = "192.0.2.7: excluded by list us: never limited, blocked or banned";
        ensure!(explained == excluded, "{round}: {explained}");
        let explained = reported(&pinned, "192.0.2.77")?;
        let blocked = "192.0.2.77: blocked by list drop: every packet is dropped";
        ensure!(explained == blocked, "{round}: {explained}");
        let explained = reported(&pinned, "198.51.100.7")?;
        let by_limit = "blocked by Web: it blocks list scanners; every packet that it counts is \
                        dropped\nlimit  mode …";
        ensure!(matches(&explained, by_limit), "{round}: {explained}");

        let mut command = pinned
            .limiter
            .command(&["lists", "test", "192.0.2.77", "--json"]);
        let output = succeed(command.arg("--pin").arg(pinned.pins.path()))?;
        let tested: Value = serde_json::from_slice(&output.stdout)?;
        let expected = json!({
            "asked": "192.0.2.77",
            "lists": [{
                "list": "drop",
                "extent": "all",
                "prefix": "192.0.2.0/24",
                "more": 0,
                "used_by": [{"purpose": "block", "limit": null}],
            }],
            "listing": {"excluded": null, "blocked": "all"},
            "limits": [],
        });
        ensure!(tested == expected, "{round}: {tested:#}");
        if round == "with a daemon" {
            ensure!(pinned.limiter.terminate()?.success());
        }
    }
    Ok(())
}

/// A list must not lock the operator out.
#[test]
fn a_list_that_has_the_gateway() -> Result<()> {
    let feeds = Feeds::new()?;
    feeds.replace("bad", "10.77.0.0/24\n")?;
    let pair = crate::pair()?;
    pair.server.ip(&["route", "add", "default", "via", GOOD])?;
    fs::write(feeds.path("limiter.yaml"), feeds.configuration("bad", ""))?;
    let output = succeed(
        pair.server
            .command(Path::new(BINARY))
            .arg("check")
            .arg(feeds.path("limiter.yaml")),
    )?;
    let reported =
        "warning: list bad has 10.77.0.0/24, so it would block the default gateway 10.77.0.2: …";
    let said = text(&output.stderr)?;
    ensure!(said.lines().any(|line| matches(line, reported)), "{said}");
    Ok(())
}
