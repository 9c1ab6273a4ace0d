//! `limiter ban`.

use std::{fmt::Write as _, io::Write as _};

use anyhow::bail;
use clap::Args;
use ipnet::IpNet;
use limiter_host::guard;
use limiter_policy::text::short;
use limiter_protocol::bans::{BanChange, BanChanges, BanOutcome, BanRequest, BanResults};
use limiter_report::render::duration;
use serde_json::json;

use super::{ENDS_WITH_DAEMON, change::change, parse, stream, terms::Terms};
use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    parse::{ParsedValue, values_with_warnings},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct BanArgs {
    /// The addresses and prefixes to ban
    #[arg(
        value_name = "ADDRESS|PREFIX",
        value_parser = parse::bannable,
        required_unless_present = "stdin",
        conflicts_with = "stdin"
    )]
    prefixes: Vec<ParsedValue<IpNet>>,

    /// Read a stream of bans from stdin: lines `ADDRESS|PREFIX [DURATION] [REASON]`, with
    /// `-ADDRESS` to lift the origin's ban; or CrowdSec decisions in JSON
    #[arg(long)]
    stdin: bool,

    #[command(flatten)]
    terms: Terms,

    /// Also ban gateways, this host's own addresses, SSH peers and excluded addresses
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(in crate::cli) fn ban(args: &BanArgs) -> anyhow::Result<()> {
    if args.stdin {
        return stream::stream(&args.read, &args.terms, args.force, args.output.json);
    }
    let prefixes = values_with_warnings(&args.prefixes);
    let for_ns = args.terms.length.value_with_warning().ns;
    let changed = make(&args.read, &prefixes, &args.terms, args.force)?;
    let banned = prefixes.iter().zip(&changed.outcomes);
    if args.output.json {
        let bans = banned.map(|(prefix, outcome)| json!({"prefix": prefix, "result": outcome}));
        print_json(&json!({
            "bans": bans.collect::<Vec<_>>(),
            "ends_with_daemon": changed.ends_with_daemon,
        }))?;
    } else {
        let mut out = stdout();
        for (prefix, outcome) in banned {
            if let Some(line) = line(*prefix, outcome, for_ns) {
                writeln!(out, "{line}")?;
            }
        }
        if changed.ends_with_daemon {
            writeln!(out, "{ENDS_WITH_DAEMON}")?;
        }
    }
    none_is_refused(&prefixes, &changed)
}

/// Bans one prefix like the command without `--force`; returns the outcome in words.
pub(in crate::cli) fn ban_one(
    read: &ReadArgs,
    prefix: IpNet,
    terms: &Terms,
) -> anyhow::Result<String> {
    let changed = make(read, &[prefix], terms, false)?;
    none_is_refused(&[prefix], &changed)?;
    let lines = changed.outcomes.iter();
    let mut lines: Vec<_> = lines
        .filter_map(|outcome| line(prefix, outcome, terms.length.value.ns))
        .collect();
    if changed.ends_with_daemon {
        lines.push(ENDS_WITH_DAEMON.to_owned());
    }
    Ok(lines.join("\n"))
}

fn make(
    read: &ReadArgs,
    prefixes: &[IpNet],
    terms: &Terms,
    force: bool,
) -> anyhow::Result<BanResults> {
    let request = |prefix| {
        BanChange::Ban(BanRequest {
            prefix,
            for_ns: terms.length.value.ns,
            reason: terms.reason.clone(),
            origin: terms.origin.clone().unwrap_or_default(),
            keeps_longer: false,
        })
    };
    let wanted = BanChanges {
        changes: prefixes.iter().copied().map(request).collect(),
        force,
        together: true,
        session: guard::started_from(),
    };
    change(read, &wanted)
}

fn none_is_refused(prefixes: &[IpNet], changed: &BanResults) -> anyhow::Result<()> {
    let refused = prefixes.iter().zip(&changed.outcomes);
    let refused = refused.filter_map(|(prefix, outcome)| match outcome {
        BanOutcome::Refused { reason } => {
            Some(format!("{} is not banned: {reason}", short(*prefix)))
        }
        _ => None,
    });
    let refused: Vec<_> = refused.collect();
    if !refused.is_empty() {
        bail!("{}", refused.join("\n"));
    }
    Ok(())
}

/// Describes a made ban; `None`: it was refused.
fn line(prefix: IpNet, outcome: &BanOutcome, for_ns: Option<u64>) -> Option<String> {
    let BanOutcome::Banned {
        times,
        replaced,
        outlasted_by,
        excluded_by,
        in_place_of,
    } = outcome
    else {
        return None;
    };
    let prefix = short(prefix);
    let mut line = match for_ns {
        Some(ns) => format!("{prefix} is banned for {}", duration(ns)),
        None => format!("{prefix} is banned until it is lifted"),
    };
    if *replaced {
        line += ", which replaces its previous ban";
    }
    if *times > 1 {
        let _ = write!(line, " (its ban number {times})");
    }
    if let Some(origin) = outlasted_by {
        let _ = write!(line, "; the ban by {origin} holds longer");
    }
    if let Some(list) = excluded_by {
        let _ = write!(
            line,
            "; this has no effect while the list {list} excludes it"
        );
    }
    if let Some(other) = in_place_of {
        let _ = write!(
            line,
            "; to make room, the automatic ban of {} is lifted",
            short(*other)
        );
    }
    Some(line)
}
