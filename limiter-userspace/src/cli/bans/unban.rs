//! `limiter unban`.

use std::io::{self, Write as _};

use anyhow::bail;
use clap::{ArgGroup, Args};
use ipnet::IpNet;
use limiter_policy::text::short;
use serde_json::json;

use super::{
    change::{change, lift_all},
    parse,
};
use crate::{
    cli::{
        args::{OutputArgs, ReadArgs},
        output::print_json,
        render::counted,
    },
    protocol::bans::{BanChange, BanChanges, BanOutcome},
};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("one of them").required(true).args(["prefixes", "all"]))]
pub(in crate::cli) struct UnbanArgs {
    /// The addresses and prefixes to unban, as `limiter bans` shows them
    #[arg(value_name = "ADDRESS|PREFIX", value_parser = parse::bannable)]
    prefixes: Vec<IpNet>,

    /// Lift all bans
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(in crate::cli) fn unban(args: &UnbanArgs) -> anyhow::Result<()> {
    if args.all {
        return unban_all(args);
    }
    let changes = BanChanges {
        changes: args
            .prefixes
            .iter()
            .copied()
            .map(BanChange::Unban)
            .collect(),
        together: true,
        ..BanChanges::default()
    };
    let outcomes = change(&args.read, &changes)?.outcomes;
    let lifted = args.prefixes.iter().zip(&outcomes);
    if args.output.json {
        let bans = lifted.map(|(prefix, outcome)| json!({"prefix": prefix, "result": outcome}));
        print_json(&json!({"bans": bans.collect::<Vec<_>>()}))?;
    } else {
        let mut out = io::stdout();
        for (prefix, outcome) in lifted {
            let prefix = short(*prefix);
            match outcome {
                BanOutcome::Lifted { .. } => writeln!(out, "the ban of {prefix} is lifted")?,
                _ => writeln!(out, "{prefix} had no ban of its own")?,
            }
        }
    }
    let still_banned = args.prefixes.iter().zip(&outcomes);
    let still_banned = still_banned.filter_map(|(prefix, outcome)| match outcome {
        BanOutcome::Lifted {
            still_in: Some(wider),
        }
        | BanOutcome::NotBanned {
            still_in: Some(wider),
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

fn unban_all(args: &UnbanArgs) -> anyhow::Result<()> {
    let lifted = lift_all(&args.read)?;
    if args.output.json {
        return print_json(&json!({"lifted": lifted}));
    }
    let lifted = usize::try_from(lifted).unwrap_or(usize::MAX);
    writeln!(io::stdout(), "{} lifted", counted(lifted, "ban"))?;
    Ok(())
}
