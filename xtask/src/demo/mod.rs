//! The demonstration of `cargo xtask run`.
//!
//! A veth pair joins two network namespaces, with the daemon on one end and clients on the other: one keeps
//! within its limit, one floods, one has an override, four share an IPv6 /48. Both sides of the limiter count
//! each client's packets.

mod clients;
mod daemon;
mod live;
mod summary;
mod traffic;
mod verdict;

use std::{path::Path, process::ExitCode};

use anyhow::Result;
use testbed::{INTERRUPTED, Interrupt, Pair};

use self::{daemon::Daemon, summary::summarise};

/// Runs the demonstration. Succeeds if every client has the expected outcome.
pub(crate) fn run(limiter: &Path) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let pair = Pair::new(&clients::addresses(), &clients::server_addresses())?;
    let mut daemon = Daemon::start(limiter, &pair.server)?;
    println!("The limiter runs on one end of a veth pair; seven clients send to it for 10 s.");
    let Some(report) = traffic::run(&pair, &mut daemon, &interrupt)? else {
        daemon.stop()?;
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let summary = summarise(&report.outcomes)?;
    let status = daemon.status()?;
    daemon.stop()?;

    println!("{}\n", summary.table);
    if report.lost > 0 {
        println!(
            "{} packets were lost outside the limiter: this machine is too busy for exact numbers.\n",
            report.lost
        );
    }
    println!("limiter status:\n{}", status.trim_end());
    println!("\n{}", conclusion(summary.good));
    Ok(if summary.good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn conclusion(good: bool) -> &'static str {
    if good {
        "✓ Every client got what it should."
    } else {
        "✗ Not every client got what it should."
    }
}
