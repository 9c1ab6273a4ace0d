//! `limiter bans`.

use std::{
    cmp::Reverse,
    fmt::Write as _,
    io::{self, BufWriter, Write},
};

use clap::Args;
use ipnet::IpNet;
use limiter_policy::{policy::bans::Origin, text::short};
use limiter_protocol::bans::{BanStatus, BansQuery};
use limiter_report::render::{GAP, count, counted, duration, terminal_width};
use serde::Serialize;

use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{stdout, stdout_of_json},
    parse::{self, ParsedValue},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct BansArgs {
    /// Only the bans that contain this address or prefix or lie within it
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = parse::prefix)]
    prefix: Option<ParsedValue<IpNet>>,

    /// Only the bans of this origin, such as sshd (a jail of fail2ban's), automatic or operator
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

#[derive(Serialize)]
struct List {
    /// The configured maximum of bans.
    capacity: u32,
    /// The number of bans found.
    found: usize,
    /// Sorted by prefix; bans of the same prefix by their ends, longest first.
    bans: Vec<BanStatus>,
}

pub(in crate::cli) fn bans(args: &BansArgs) -> anyhow::Result<()> {
    let prefix = args.prefix.as_ref().map(ParsedValue::value_with_warning);
    let (capacity, bans) = fetch(&args.read, prefix, args.origin.as_ref())?;
    let mut list = List {
        capacity,
        found: bans.len(),
        bans,
    };
    list.bans.truncate(args.limit.unwrap_or(usize::MAX));
    if args.output.json {
        let mut out = BufWriter::new(stdout_of_json());
        serde_json::to_writer(&mut out, &list).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    let mut out = BufWriter::new(stdout());
    print(&mut out, &list, terminal_width())?;
    Ok(out.flush()?)
}

/// Fetches all bans, or the bans that contain a prefix or lie within it, a few thousand per request. Returns
/// the configured maximum, and the bans.
pub(in crate::cli) fn fetch(
    read: &ReadArgs,
    prefix: Option<IpNet>,
    origin: Option<&Origin>,
) -> anyhow::Result<(u32, Vec<BanStatus>)> {
    let mut conversation = read.conversation();
    let mut all = Vec::new();
    let mut position = None;
    let capacity = loop {
        let query = BansQuery {
            prefix,
            origin: origin.cloned(),
            position,
        };
        let page = conversation.query(&query)?;
        all.extend(page.bans);
        position = page.next;
        if position.is_none() {
            break page.capacity;
        }
    };
    // A ban that was renewed or moved between two responses is in both.
    all.sort_unstable_by(|one: &BanStatus, other| {
        (one.prefix, &one.origin).cmp(&(other.prefix, &other.origin))
    });
    all.dedup_by(|one, other| one.prefix == other.prefix && one.origin == other.origin);
    let ends_in = |ban: &BanStatus| ban.ends_in_ns.unwrap_or(u64::MAX);
    all.sort_by_key(|ban| (ban.prefix, Reverse(ends_in(ban))));
    Ok((capacity, all))
}

const HEADER: [&str; 7] = [
    "prefix", "origin", "since", "ends in", "times", "hits", "reason",
];

const REASONS: usize = 6;

/// The columns to leave out on a narrow terminal, in this order.
const LESS_WANTED: [usize; 3] = [2, 4, 5];

/// The columns of numbers, which are right-aligned.
const RIGHT: [usize; 3] = [3, 4, 5];

/// The width that reasons need.
const REASON: usize = 20;

/// Prints line by line, as laying out half a million bans as one table takes much memory.
fn print(out: &mut impl Write, list: &List, room: Option<usize>) -> anyhow::Result<()> {
    if !list.bans.is_empty() {
        let mut widths = HEADER.map(str::len);
        for ban in &list.bans {
            for (width, cell) in widths.iter_mut().zip(cells(ban)) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let shown = shown(widths, room);
        print_row(out, &shown, widths, &HEADER.map(ToOwned::to_owned))?;
        for ban in &list.bans {
            print_row(out, &shown, widths, &cells(ban))?;
        }
        writeln!(out)?;
    }
    let capacity = count(list.capacity.into());
    write!(out, "{} of up to {capacity}", counted(list.found, "ban"))?;
    if list.bans.len() < list.found {
        write!(out, ", the first {} shown", count(list.bans.len() as u64))?;
    }
    writeln!(out)?;
    Ok(())
}

fn shown(mut widths: [usize; 7], room: Option<usize>) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..widths.len()).collect();
    widths[REASONS] = widths[REASONS].min(REASON);
    for column in LESS_WANTED {
        let cells: usize = shown.iter().map(|shown| widths[*shown] + GAP).sum();
        if room.is_some_and(|room| cells - GAP > room) {
            shown.retain(|shown| *shown != column);
        }
    }
    shown
}

fn cells(ban: &BanStatus) -> [String; 7] {
    let mut reason = match &ban.limit {
        None => ban.reason.clone(),
        Some(limit) => format!("{limit}: {}", ban.reason),
    };
    if let Some(list) = &ban.excluded_by {
        let _ = write!(reason, " (no effect: excluded by the list {list})");
    }
    [
        short(ban.prefix),
        ban.origin.to_string(),
        format!("{:.0}", ban.since),
        ban.ends_in_ns.map_or_else(|| "–".to_owned(), duration),
        count(ban.times.into()),
        count(ban.hits),
        reason,
    ]
}

fn print_row(
    out: &mut impl Write,
    shown: &[usize],
    widths: [usize; 7],
    row: &[String; 7],
) -> io::Result<()> {
    let cells = shown.iter().map(|column| {
        let (cell, width) = (&row[*column], widths[*column]);
        if RIGHT.contains(column) {
            format!("{cell:>width$}")
        } else {
            format!("{cell:width$}")
        }
    });
    let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
    writeln!(out, "{}", line.trim_end())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn ban(origin: &str, limit: Option<&str>, reason: &str) -> BanStatus {
        BanStatus {
            prefix: "192.0.2.0/24".parse().unwrap(),
            origin: origin.parse().unwrap(),
            limit: limit.map(ToOwned::to_owned),
            reason: reason.to_owned(),
            since: Timestamp::UNIX_EPOCH,
            until: None,
            ends_in_ns: None,
            times: 2,
            hits: 1_234,
            hit_bytes: 74_040,
            excluded_by: None,
        }
    }

    #[test]
    fn narrow_terminals_show_less() {
        let list = List {
            capacity: 1_024,
            found: 2,
            bans: vec![
                ban("sixteen-letters-", None, "x"),
                ban("automatic", Some("PacketsPerIPAddress"), "9 drops in 1s"),
            ],
        };
        let print = |room| {
            let mut out = Vec::new();
            print(&mut out, &list, room).unwrap();
            String::from_utf8(out).unwrap()
        };
        let wide = "\
prefix        origin            since                 ends in  times   hits  reason
192.0.2.0/24  sixteen-letters-  1970-01-01T00:00:00Z        –      2  1 234  x
192.0.2.0/24  automatic         1970-01-01T00:00:00Z        –      2  1 234  PacketsPerIPAddress: 9 drops in 1s

2 bans of up to 1 024
";
        assert_eq!(print(None), wide);
        assert_eq!(print(Some(120)), wide);
        let of_80 = "\
prefix        origin            ends in  times   hits  reason
192.0.2.0/24  sixteen-letters-        –      2  1 234  x
192.0.2.0/24  automatic               –      2  1 234  PacketsPerIPAddress: 9 drops in 1s

2 bans of up to 1 024
";
        assert_eq!(print(Some(80)), of_80);
        let of_72 = "\
prefix        origin            ends in   hits  reason
192.0.2.0/24  sixteen-letters-        –  1 234  x
192.0.2.0/24  automatic               –  1 234  PacketsPerIPAddress: 9 drops in 1s

2 bans of up to 1 024
";
        assert_eq!(print(Some(72)), of_72);
        let of_60 = "\
prefix        origin            ends in  reason
192.0.2.0/24  sixteen-letters-        –  x
192.0.2.0/24  automatic               –  PacketsPerIPAddress: 9 drops in 1s

2 bans of up to 1 024
";
        assert_eq!(print(Some(60)), of_60);
    }
}
