//! `limiter bans`.

use std::{
    cmp::Reverse,
    io::{self, BufWriter, Write},
};

use anyhow::bail;
use clap::Args;
use ipnet::IpNet;
use limiter_policy::{policy::bans::Origin, text::short};
use serde::Serialize;

use super::parse;
use crate::{
    cli::{
        args::{OutputArgs, ReadArgs},
        render::{count, counted, duration},
    },
    protocol::{
        Answer, Request,
        bans::{BanStatus, BansQuery},
    },
};

#[derive(Debug, Args)]
pub(in crate::cli) struct BansArgs {
    /// Only the bans that contain this address or prefix or lie within it
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = parse::prefix)]
    prefix: Option<IpNet>,

    /// Only the bans of this origin, such as fail2ban, automatic or operator
    #[arg(long, value_name = "NAME")]
    origin: Option<Origin>,

    /// Show at most this many; all by default
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// The bans in force.
#[derive(Serialize)]
struct List {
    /// The most bans there is room for.
    capacity: u32,
    /// How many were found.
    found: usize,
    /// Sorted by prefix, those of a prefix by their ends, the longest first.
    bans: Vec<BanStatus>,
}

pub(in crate::cli) fn bans(args: &BansArgs) -> anyhow::Result<()> {
    let mut list = fetch(args)?;
    list.bans.truncate(args.limit.unwrap_or(usize::MAX));
    let mut out = BufWriter::new(io::stdout().lock());
    if args.output.json {
        serde_json::to_writer(&mut out, &list).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        print(&mut out, &list)?;
    }
    Ok(out.flush()?)
}

/// Fetches all bans, a few thousand per answer.
fn fetch(args: &BansArgs) -> anyhow::Result<List> {
    let mut conversation = args.read.conversation();
    let mut all = Vec::new();
    let mut position = None;
    let capacity = loop {
        let query = BansQuery {
            prefix: args.prefix,
            origin: args.origin.clone(),
            position,
        };
        let Answer::Bans(page) = conversation.ask(&Request::Bans(query))? else {
            bail!("the daemon gave an unexpected answer");
        };
        all.extend(page.bans);
        position = page.next;
        if position.is_none() {
            break page.capacity;
        }
    };
    // A ban that was renewed or took another place between two answers is in both.
    all.sort_unstable_by(|one: &BanStatus, other| {
        (one.prefix, &one.origin).cmp(&(other.prefix, &other.origin))
    });
    all.dedup_by(|one, other| one.prefix == other.prefix && one.origin == other.origin);
    let ends_in = |ban: &BanStatus| ban.ends_in_ns.unwrap_or(u64::MAX);
    all.sort_by_key(|ban| (ban.prefix, Reverse(ends_in(ban))));
    Ok(List {
        capacity,
        found: all.len(),
        bans: all,
    })
}

const HEADER: [&str; 6] = ["prefix", "by", "since", "ends in", "times", "reason"];

/// Prints line by line: laying out half a million bans as one table takes much memory.
fn print(out: &mut impl Write, list: &List) -> anyhow::Result<()> {
    if !list.bans.is_empty() {
        let mut widths = HEADER.map(str::len);
        for ban in &list.bans {
            for (width, cell) in widths.iter_mut().zip(cells(ban)) {
                *width = (*width).max(cell.chars().count());
            }
        }
        print_row(out, widths, &HEADER.map(ToOwned::to_owned))?;
        for ban in &list.bans {
            print_row(out, widths, &cells(ban))?;
        }
        writeln!(out)?;
    }
    let room = count(list.capacity.into());
    write!(out, "{} of up to {room}", counted(list.found, "ban"))?;
    if list.bans.len() < list.found {
        write!(out, ", the first {} shown", count(list.bans.len() as u64))?;
    }
    writeln!(out)?;
    Ok(())
}

fn cells(ban: &BanStatus) -> [String; 6] {
    [
        short(ban.prefix),
        match &ban.limit {
            None => ban.origin.to_string(),
            Some(limit) => format!("{} ({limit})", ban.origin),
        },
        format!("{:.0}", ban.since),
        ban.ends_in_ns.map_or_else(|| "–".to_owned(), duration),
        count(ban.times.into()),
        match &ban.excluded_by {
            None => ban.reason.clone(),
            Some(list) => format!("{} (no effect: excluded by the list {list})", ban.reason),
        },
    ]
}

/// Prints one row, with numbers aligned right.
fn print_row(out: &mut impl Write, widths: [usize; 6], row: &[String; 6]) -> io::Result<()> {
    let [prefix, by, since, ends_in, times, reason] = row;
    let [of_prefix, of_by, of_since, of_ends_in, of_times, _] = widths;
    let line = format!(
        "{prefix:of_prefix$}  {by:of_by$}  {since:of_since$}  {ends_in:>of_ends_in$}  \
         {times:>of_times$}  {reason}"
    );
    writeln!(out, "{}", line.trim_end())
}
