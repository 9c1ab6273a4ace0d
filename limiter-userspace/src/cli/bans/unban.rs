//! `limiter unban`.

use std::{fmt::Write as _, io::Write as _};

use anyhow::{Context as _, bail};
use clap::{ArgGroup, Args};
use ipnet::IpNet;
use limiter_policy::{policy::bans::Origin, text::short};
use limiter_protocol::bans::{BanChange, BanChanges, BanOutcome, UnbanRequest};
use limiter_report::render::counted;
use serde_json::json;

use super::{
    change::{change, lift_all},
    parse,
};
use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    parse::{ParsedValue, values_with_warnings},
};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("one of them").required(true).args(["prefixes", "all"]))]
pub(in crate::cli) struct UnbanArgs {
    /// The addresses and prefixes to unban, as `limiter bans` shows them
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = parse::bannable)]
    prefixes: Vec<ParsedValue<IpNet>>,

    /// Lift all bans
    #[arg(long)]
    all: bool,

    /// Lift only the bans of this origin, such as sshd (a jail of fail2ban's), automatic or operator;
    /// without it, everybody's
    #[arg(long, value_name = "NAME")]
    origin: Option<Origin>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(in crate::cli) fn unban(args: &UnbanArgs) -> anyhow::Result<()> {
    if args.all {
        return unban_all(args);
    }
    let prefixes = values_with_warnings(&args.prefixes);
    let outcomes = lift(&args.read, &prefixes, args.origin.as_ref())?;
    let lifted = prefixes.iter().zip(&outcomes);
    if args.output.json {
        let bans = lifted.map(|(prefix, outcome)| json!({"prefix": prefix, "result": outcome}));
        print_json(&json!({"bans": bans.collect::<Vec<_>>()}))?;
    } else {
        let mut out = stdout();
        for (prefix, outcome) in lifted {
            writeln!(out, "{}", line(*prefix, outcome, args.origin.as_ref()))?;
        }
    }
    if args.origin.is_some() {
        // Bans by other origins stay on purpose, and each line names them.
        return Ok(());
    }
    none_is_still_banned(&prefixes, &outcomes)
}

/// Lifts the bans of one prefix by all origins, like the command; returns the outcome in words.
pub(in crate::cli) fn unban_one(read: &ReadArgs, prefix: IpNet) -> anyhow::Result<String> {
    let outcomes = lift(read, &[prefix], None)?;
    let lines = outcomes.iter().map(|outcome| line(prefix, outcome, None));
    let lines = lines.collect::<Vec<_>>().join("\n");
    none_is_still_banned(&[prefix], &outcomes).with_context(|| lines.clone())?;
    Ok(lines)
}

fn lift(
    read: &ReadArgs,
    prefixes: &[IpNet],
    origin: Option<&Origin>,
) -> anyhow::Result<Vec<BanOutcome>> {
    let request = |prefix| {
        BanChange::Unban(UnbanRequest {
            prefix,
            origin: origin.cloned(),
        })
    };
    let changes = BanChanges {
        changes: prefixes.iter().copied().map(request).collect(),
        together: true,
        ..BanChanges::default()
    };
    Ok(change(read, &changes)?.outcomes)
}

fn none_is_still_banned(prefixes: &[IpNet], outcomes: &[BanOutcome]) -> anyhow::Result<()> {
    let still_banned = prefixes.iter().zip(outcomes);
    let still_banned = still_banned.filter_map(|(prefix, outcome)| match outcome {
        BanOutcome::Lifted {
            still_in: Some(wider),
            ..
        }
        | BanOutcome::NotBanned {
            still_in: Some(wider),
            ..
        } => Some(format!(
            "{} is still banned: it is in {wider}, which is banned",
            short(*prefix)
        )),
        _ => None,
    });
    let still_banned: Vec<_> = still_banned.collect();
    if !still_banned.is_empty() {
        bail!("{}", still_banned.join("\n"));
    }
    Ok(())
}

/// Names the origins of the lifted bans of a prefix, and the origins with bans still in force.
fn line(prefix: IpNet, outcome: &BanOutcome, origin: Option<&Origin>) -> String {
    let prefix = short(prefix);
    let (mut line, still_by, still_in) = match outcome {
        BanOutcome::Lifted {
            origins,
            still_by,
            still_in,
        } => {
            let origin_list = Origin::list(origins);
            let lifted = if origins.len() == 1 {
                format!("the ban of {prefix} is lifted: {origin_list}")
            } else {
                format!("the bans of {prefix} are lifted: {origin_list}")
            };
            (lifted, still_by, still_in)
        }
        BanOutcome::NotBanned { still_by, still_in } => {
            let none = match origin {
                Some(origin) => format!("{prefix} had no ban by {origin}"),
                None => format!("{prefix} had no ban of its own"),
            };
            (none, still_by, still_in)
        }
        BanOutcome::Banned { .. } | BanOutcome::Outlasted | BanOutcome::Refused { .. } => {
            return String::new();
        }
    };
    if !still_by.is_empty() {
        let _ = write!(line, "; it is still banned by {}", Origin::list(still_by));
    }
    if let (Some(_), Some(wider)) = (origin, still_in) {
        let _ = write!(line, "; it is still banned in {wider}");
    }
    line
}

fn unban_all(args: &UnbanArgs) -> anyhow::Result<()> {
    let lifted = lift_all(&args.read, args.origin.as_ref())?;
    if args.output.json {
        return print_json(&json!({"lifted": lifted}));
    }
    let lifted = usize::try_from(lifted).unwrap_or(usize::MAX);
    writeln!(stdout(), "{} lifted", counted(lifted, "ban"))?;
    Ok(())
}
