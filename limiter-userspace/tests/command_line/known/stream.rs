//! Sources read from a stream.

use std::{fmt::Write as _, io::Write as _};

use anyhow::{Context as _, Result, ensure};

use super::{CONFIGURATION, is_trusted, proven, start};
use crate::{
    pinned::Pinned,
    streams::{feed, spawn},
    text, wait_for,
};

#[test]
fn ten_thousand_lines() -> Result<()> {
    // So large that no five sources share a bucket of the table.
    let large = CONFIGURATION.replace("capacity: 4096", "capacity: 1000000");
    let (_pair, limiter) = start(&large)?;
    let address = |number: u32| format!("198.18.{}.{}", number / 256, number % 256);
    let mut input = "198.19.0.0/20 1d\n".to_owned();
    for number in 0..10_000 {
        writeln!(input, "{}", address(number))?;
    }
    for number in 0..2_500 {
        writeln!(input, "-{}", address(4 * number))?;
    }
    let output = feed(
        &mut limiter.command(&["trust", "--stdin", "--for", "6h"]),
        &input,
    )?;
    ensure!(output.status.success(), "{output:?}");
    let totals = text(&output.stdout)?.lines().next();
    assert_eq!(
        totals,
        Some("known 14 096, forgotten 2 500, refused 0, bad 0")
    );
    assert_eq!(proven(&limiter.show(&["trusted", "--json"])?)?, 11_596);
    ensure!(is_trusted(&limiter, "198.18.0.1")? && !is_trusted(&limiter, "198.18.0.4")?);
    Ok(())
}

#[test]
fn bad_lines_are_told_and_the_others_applied() -> Result<()> {
    let (_pair, limiter) = start(CONFIGURATION)?;
    let input =
        "# players\n\n192.0.2.1\n192.0.2.2 1h\nlobby\n192.0.2.3 1ms\n0.0.0.0/0\n-192.0.2.9\n";
    let output = feed(&mut limiter.command(&["trust", "--stdin"]), input)?;
    assert_eq!(output.status.code(), Some(1));
    let totals = text(&output.stdout)?.lines().next();
    assert_eq!(totals, Some("known 2, forgotten 0, refused 1, bad 2"));
    let mut lines: Vec<_> = text(&output.stderr)?.lines().collect();
    assert_eq!(lines.pop(), Some("not everything was applied"));
    lines.sort_unstable();
    let begins = [
        "line 5: invalid 'lobby': expected an address or a prefix, such as ",
        "line 6: invalid duration '1ms': must be from 10s to four years (1460d)",
        "line 7: 0.0.0.0/0 is not trusted: it has 4 294 967 296 sources, and ",
    ];
    assert_eq!(lines.len(), begins.len(), "{lines:?}");
    for (line, begins) in lines.iter().zip(begins) {
        ensure!(line.starts_with(begins), "{line}");
    }
    Ok(())
}

#[test]
fn what_comes_is_applied_while_more_is_waited_for() -> Result<()> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    let mut child = spawn(pinned.with_pins("trust").arg("--stdin"))?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    writeln!(stdin, "192.0.2.1")?;
    wait_for(|| is_known(&pinned, "192.0.2.1"))?;
    // The stream goes on without a daemon, and does not prevent one from starting.
    ensure!(pinned.limiter.terminate()?.success());
    writeln!(stdin, "192.0.2.2\n-192.0.2.1")?;
    wait_for(|| is_known(&pinned, "192.0.2.2"))?;
    pinned.limiter.restart()?;
    writeln!(stdin, "192.0.2.3")?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{output:?}");
    let totals = "known 3, forgotten 1, refused 0, bad 0\n";
    assert_eq!(text(&output.stdout)?, totals);
    assert_eq!(proven(&pinned.limiter.show(&["trusted", "--json"])?)?, 2);
    Ok(())
}

fn is_known(pinned: &Pinned, address: &str) -> Result<bool> {
    let output = pinned
        .with_pins("trusted")
        .args([address, "--json"])
        .output()?;
    Ok(output.status.success() && text(&output.stdout)?.contains("trusted"))
}
