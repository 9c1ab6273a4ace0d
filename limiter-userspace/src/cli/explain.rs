//! `limiter explain`.

use std::{
    io::{self, Write},
    net::IpAddr,
};

use anyhow::bail;
use clap::Args;

use super::{
    ControlArgs, OutputArgs, print_json,
    render::{count, duration, table},
};
use crate::control::{
    client::ask,
    protocol::{Answer, Explanation, Request},
};

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The IPv4 or IPv6 address
    address: IpAddr,

    #[command(flatten)]
    control: ControlArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    let request = Request::Explain {
        address: args.address,
    };
    let Answer::Explanation(explanation) = ask(&args.control.socket, request)? else {
        bail!("the daemon answered something else than was asked");
    };
    if args.output.json {
        print_json(&explanation)
    } else {
        print(&explanation)
    }
}

fn print(explanation: &Explanation) -> anyhow::Result<()> {
    let mut out = io::stdout();
    if explanation.limits.is_empty() {
        writeln!(
            out,
            "{}: no limit applies, every packet passes",
            explanation.address
        )?;
        return Ok(());
    }
    let rows = explanation.limits.iter().map(|limit| {
        [
            limit.limit.clone(),
            limit.mode.clone(),
            limit.matching.clone().unwrap_or_else(|| "–".to_owned()),
            limit.id.clone(),
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
        "source",
        "rate",
        "burst",
        "remaining",
        "retry in",
        "reset in",
    ];
    writeln!(out, "{}", explanation.address)?;
    writeln!(out, "{}", table(header, [5, 6, 7, 8, 9], rows))?;
    Ok(())
}
