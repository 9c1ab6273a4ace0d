//! `limiter explain`.

use std::{
    io::{self, Write},
    net::IpAddr,
};

use anyhow::bail;
use clap::Args;

use super::{
    OutputArgs, ReadArgs, print_json,
    render::{ago, at_least, count, duration, table_without},
    sieve,
};
use crate::control::protocol::{Answer, Explanation, LastDrop, Request};

/// The column that is told where interfaces have buckets of their own.
const INTERFACE: usize = 4;

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The IPv4 or IPv6 address
    address: IpAddr,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    let explanation = fetch(&args.read, args.address)?;
    if args.output.json {
        print_json(&explanation)
    } else {
        print(&explanation)
    }
}

pub(super) fn fetch(read: &ReadArgs, address: IpAddr) -> anyhow::Result<Explanation> {
    let Answer::Explanation(explanation) = read.ask(&Request::Explain { address })? else {
        bail!("the daemon answered something else than was asked");
    };
    Ok(explanation)
}

fn print(explanation: &Explanation) -> anyhow::Result<()> {
    let mut out = io::stdout();
    if explanation.limits.is_empty() {
        writeln!(
            out,
            "{}: no limit applies, every packet passes",
            explanation.address
        )?;
        return print_rest(&mut out, explanation);
    }
    let rows = explanation.limits.iter().map(|limit| {
        [
            limit.limit.clone(),
            limit.mode.clone(),
            limit.matching.clone().unwrap_or_else(|| "–".to_owned()),
            limit.id.clone(),
            limit.interface.clone().unwrap_or_default(),
            limit.source.clone(),
            format!("{} per {}", count(limit.count), duration(limit.period_ns)),
            count(limit.burst),
            count(limit.remaining),
            duration(limit.retry_in_ns),
            duration(limit.reset_in_ns),
        ]
    });
    let header = [
        "limit",
        "mode",
        "match",
        "id",
        "interface",
        "source",
        "rate",
        "burst",
        "remaining",
        "retry in",
        "reset in",
    ];
    writeln!(out, "{}", explanation.address)?;
    let is_per_interface = explanation
        .limits
        .iter()
        .any(|limit| limit.interface.is_some());
    let hidden: &[usize] = if is_per_interface { &[] } else { &[INTERFACE] };
    let table = table_without(hidden, header, [6, 7, 8, 9, 10], rows);
    writeln!(out, "{table}")?;
    print_rest(&mut out, explanation)
}

/// What is known beside the limits.
fn print_rest(out: &mut impl Write, explanation: &Explanation) -> anyhow::Result<()> {
    if !explanation.sieves.is_empty() {
        writeln!(out)?;
    }
    for sieve in &explanation.sieves {
        writeln!(out, "{}", sieve::explained(sieve))?;
    }
    print_last_drop(out, explanation.last_drop.as_ref())
}

fn print_last_drop(out: &mut impl Write, last_drop: Option<&LastDrop>) -> anyhow::Result<()> {
    if let Some(last) = last_drop {
        let [when, how_often] = last_drop_lines(last);
        writeln!(out, "\n{when} ({how_often})")?;
    }
    Ok(())
}

/// The last drop of an address: when, and how often before.
pub(super) fn last_drop_lines(last: &LastDrop) -> [String; 2] {
    let when = format!(
        "last drop: {} by {}",
        ago(last.last_drop_ago_ns),
        last.limit
    );
    let how_often = format!(
        "its drops: {}, the first {}",
        at_least(last.drops, last.lower_bound),
        ago(last.first_drop_ago_ns),
    );
    [when, how_often]
}
