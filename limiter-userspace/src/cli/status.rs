//! `limiter status`.

use std::io::{self, Write};

use anyhow::bail;
use clap::Args;
use limiter_common::reason::{Action, Reason};

use super::{
    ControlArgs, OutputArgs, print_json,
    render::{count, counted, table},
    traffic::{LimitRow, limits_table},
};
use crate::control::{
    client::ask,
    protocol::{Answer, Request, Status},
};

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    control: ControlArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let Answer::Status(status) = ask(&args.control.socket, Request::Status)? else {
        bail!("the daemon answered something else than was asked");
    };
    if args.output.json {
        print_json(&status)
    } else {
        print(&status)
    }
}

fn print(status: &Status) -> anyhow::Result<()> {
    let mut out = io::stdout();
    for interface in &status.interfaces {
        let (name, mode, since) = (&interface.name, &interface.mode, interface.since);
        if !interface.attached {
            writeln!(out, "{name}: NOT attached: the interface has vanished")?;
            continue;
        }
        writeln!(out, "{name}: attached in {mode} mode since {since:.0}")?;
        if let Some(reason) = &interface.fell_back {
            writeln!(out, "  slow: the driver refused native mode ({reason})")?;
        }
    }
    writeln!(
        out,
        "policy {}: {}, {}\n",
        status.policy.generation,
        counted(status.policy.limits, "limit"),
        counted(status.policy.overrides, "override"),
    )?;

    let limits: Vec<_> = status
        .limits
        .iter()
        .map(|(name, limit)| LimitRow {
            name: name.clone(),
            mode: limit.mode.clone(),
            traffic: limit.into(),
        })
        .collect();
    writeln!(out, "{}\n", limits_table(&limits))?;

    let malformed = if status.policy.malformed == Action::Pass.name() {
        Action::Pass
    } else {
        Action::Drop
    };
    // In the order of the table of reasons; those that never occurred say nothing.
    let reasons = Reason::ALL.iter().filter_map(|reason| {
        let packets = status
            .reasons
            .get(reason.name())
            .filter(|packets| **packets > 0)?;
        Some([
            reason.action(malformed).name().to_owned(),
            reason.name().to_owned(),
            count(*packets),
            reason.meaning().to_owned(),
        ])
    });
    let mut reasons = reasons.peekable();
    if reasons.peek().is_none() {
        writeln!(out, "No packet has come yet.")?;
    } else {
        let header = ["verdict", "reason", "packets", "meaning"];
        writeln!(out, "{}", table(header, [2], reasons))?;
    }
    Ok(())
}
