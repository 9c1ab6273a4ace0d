//! `limiter offenders`.

use std::{io::Write, time::Duration};

use clap::Args;
use limiter_protocol::{Grouping, MAX_OFFENDERS, OffenderList, OffenderQuery};
use limiter_report::render::{ago, at_least, count, nanoseconds, table_without};

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    parse::interval,
};

#[derive(Debug, Args)]
pub(super) struct OffendersArgs {
    #[command(flatten)]
    rows: RowsArgs,

    /// Only rows with a drop within this time, such as 30s or 10m
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    within: Option<Duration>,

    /// Show at most this many rows
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_OFFENDERS))
    )]
    count: u32,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// Selects the rows of a list of offenders.
#[derive(Debug, Args)]
pub(super) struct RowsArgs {
    /// Only drops by this limit
    #[arg(long, value_name = "NAME")]
    pub(super) limit: Option<String>,

    /// The meaning of a row
    #[arg(long, value_enum, value_name = "WHAT", default_value = "address")]
    pub(super) by: Grouping,
}

pub(super) fn offenders(args: OffendersArgs) -> anyhow::Result<()> {
    let by = args.rows.by;
    let query = OffenderQuery {
        limit: args.rows.limit,
        within_ns: args.within.map(nanoseconds),
        by,
        count: args.count,
    };
    let list = args.read.query(&query)?;
    if args.output.json {
        print_json(&list)
    } else {
        print(&list, by, args.within.is_some())
    }
}

fn print(list: &OffenderList, by: Grouping, lately: bool) -> anyhow::Result<()> {
    const ADDRESSES: usize = 2;
    let mut out = stdout();
    if list.offenders.is_empty() {
        let lately = if lately { "recent " } else { "" };
        writeln!(out, "No {lately}drops are remembered.")?;
    } else {
        let (of, hidden) = match by {
            Grouping::Address => ("address", &[ADDRESSES][..]),
            Grouping::Range => ("range", &[][..]),
            Grouping::Name => ("name", &[ADDRESSES][..]),
        };
        let header = ["limit", of, "addresses", "drops", "first drop", "last drop"];
        let rows = list.offenders.iter().map(|offender| {
            [
                offender.dropper(),
                offender.id.clone(),
                count(offender.addresses),
                at_least(offender.drops, list.lower_bound),
                ago(offender.first_drop_ago_ns),
                ago(offender.last_drop_ago_ns),
            ]
        });
        let table = table_without(hidden, header, [ADDRESSES, 3, 4, 5], rows);
        writeln!(out, "{table}\n")?;
    }
    writeln!(
        out,
        "offenders: {} of up to {} remembered, {} forgotten; drops: {} recorded, {} skipped",
        count(list.remembered),
        count(list.capacity.into()),
        count(list.forgotten),
        count(list.recorded),
        count(list.skipped),
    )?;
    Ok(())
}
