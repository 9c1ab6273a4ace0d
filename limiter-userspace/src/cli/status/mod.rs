//! `limiter status`.

mod check;
mod print;
mod screen;
mod watch;

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use clap::Args;
use limiter_protocol::StatusQuery;
use limiter_report::health;

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    parse::interval,
};

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show it again at this interval, such as 10s, until Ctrl-C; with --json, one document per line
    #[arg(
        short,
        long,
        value_name = "DURATION",
        num_args = 0..=1,
        default_missing_value = "1s",
        value_parser = interval
    )]
    watch: Option<Duration>,

    /// Say on one line whether all is well, for a monitoring system, with the exit codes of its
    /// plugins: 0 all is well, 1 a warning, 2 critical, 3 unknown
    #[arg(long, conflicts_with_all = ["watch", "json"])]
    pub(super) check: bool,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    if let Some(every) = args.watch {
        return watch::watch(args, every);
    }
    let status = args.read.query(&StatusQuery)?;
    if args.output.json {
        print_json(&status)?;
    } else {
        print::print(&mut stdout(), &status)?;
    }
    let interfaces = status.interfaces.iter();
    let detached = interfaces.filter(|interface| health::why_detached(interface).is_some());
    let detached: Vec<_> = detached.map(|interface| interface.name.as_str()).collect();
    if !detached.is_empty() {
        bail!("not attached: {}", detached.join(", "));
    }
    Ok(())
}

/// Prints on one line whether all is well.
pub(super) fn check(args: &StatusArgs) -> ExitCode {
    check::check(&args.read)
}
