//! The arguments of `limiter top`.

use std::time::Duration;

use clap::Args;
use limiter_protocol::MAX_OFFENDERS;

use super::order::Column;
use crate::cli::{
    args::{OutputArgs, ReadArgs},
    offenders::RowsArgs,
    parse::interval,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct TopArgs {
    /// The interval between updates
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "1s",
        value_parser = interval
    )]
    pub(super) interval: Duration,

    #[command(flatten)]
    pub(super) rows: RowsArgs,

    /// The column to sort by
    #[arg(long, value_enum, value_name = "COLUMN", default_value = "rate")]
    pub(super) sort: Column,

    /// The most rows in a document, with --json
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 20,
        requires = "json",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_OFFENDERS))
    )]
    pub(super) count: u32,

    #[command(flatten)]
    pub(super) read: ReadArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}
