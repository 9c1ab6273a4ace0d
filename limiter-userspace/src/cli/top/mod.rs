//! `limiter top`.

mod document;
mod filter;
mod history;
mod keys;
mod live;
mod model;
mod order;
mod rates;
mod screen;
mod snapshot;
#[cfg(test)]
mod testing;
mod view;

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use anyhow::bail;
use clap::Args;

use self::order::Column;
use super::{
    args::{OutputArgs, ReadArgs},
    offenders::RowsArgs,
    repeat,
    status::parse_seconds,
};
use crate::protocol::MAX_OFFENDERS;

#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// How often the daemon is asked
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1",
        value_parser = parse_seconds
    )]
    interval: Duration,

    #[command(flatten)]
    rows: RowsArgs,

    /// By which column rows are sorted
    #[arg(long, value_enum, value_name = "COLUMN", default_value = "rate")]
    sort: Column,

    /// How many rows a document has at most; for --json
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 20,
        requires = "json",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_OFFENDERS))
    )]
    count: u32,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn top(args: TopArgs) -> anyhow::Result<()> {
    if args.output.json {
        repeat::run(document::print(args))
    } else if io::stdout().is_terminal() {
        repeat::run(live::show(args))
    } else {
        bail!(
            "there is no terminal to draw on: use --json for a document a line, or `limiter \
             offenders` for a table"
        )
    }
}
