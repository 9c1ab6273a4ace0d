//! `limiter status`.

mod print;
mod screen;
mod watch;

use std::{io, time::Duration};

use anyhow::bail;
use clap::Args;

use super::{
    args::{OutputArgs, ReadArgs},
    output::print_json,
};
use crate::protocol::{Answer, Request, Status};

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show it again every SECONDS seconds until Ctrl-C; with --json, one document per line
    #[arg(
        short,
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "1",
        value_parser = parse_seconds
    )]
    watch: Option<Duration>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    const FROM: Duration = Duration::from_millis(100);
    const TO: Duration = Duration::from_hours(24);
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| (FROM..=TO).contains(duration))
        .ok_or_else(|| "expected seconds, from 0.1 to 86400".to_owned())
}

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    if let Some(every) = args.watch {
        return watch::watch(args, every);
    }
    let status = fetch(&args.read)?;
    if args.output.json {
        print_json(&status)
    } else {
        print::print(&mut io::stdout(), &status)
    }
}

pub(super) fn fetch(read: &ReadArgs) -> anyhow::Result<Status> {
    let Answer::Status(status) = read.ask(&Request::Status)? else {
        bail!("the daemon gave an unexpected answer");
    };
    Ok(*status)
}
