//! `limiter explain`.

use std::{io::Write, net::IpAddr};

use clap::Args;
use limiter_policy::text::short;
use limiter_protocol::{Explain, Explanation, LastDrop};
use limiter_report::{
    explanation::{answers, headline, last_drop_lines, limits, summary},
    render::{duration, hits},
    sieves, standing,
};

use super::{
    args::{OutputArgs, ReadArgs, RequestedNameArgs, ToArgs},
    output::{print_json, stdout},
    parse::{self, ParsedValue},
};

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The IPv4 or IPv6 address
    #[arg(value_parser = parse::address)]
    address: ParsedValue<IpAddr>,

    #[command(flatten)]
    to: ToArgs,

    #[command(flatten)]
    requested: RequestedNameArgs,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn explain(args: &ExplainArgs) -> anyhow::Result<()> {
    let address = args.address.value_with_warning();
    let to = args.to.of(address)?;
    let explanation = args.read.query(&Explain {
        address,
        to,
        requested_name: args.requested.of(),
    })?;
    if args.output.json {
        print_json(&explanation)
    } else {
        print(&explanation)
    }
}

fn print(explanation: &Explanation) -> anyhow::Result<()> {
    let mut out = stdout();
    writeln!(out, "{}", headline(explanation))?;
    print_bans(&mut out, explanation)?;
    if explanation.limits.is_empty() {
        for line in summary(explanation) {
            writeln!(out, "{}: {line}", explanation.address)?;
        }
        return print_rest(&mut out, explanation);
    }
    for line in summary(explanation) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{}", limits::table(&explanation.limits))?;
    print_rest(&mut out, explanation)
}

/// Prints everything except the limits.
fn print_rest(out: &mut impl Write, explanation: &Explanation) -> anyhow::Result<()> {
    for lines in [
        standing::explanation_lines(explanation),
        answers(explanation),
    ] {
        if !lines.is_empty() {
            writeln!(out)?;
        }
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    if !explanation.sieves.is_empty() {
        writeln!(out)?;
    }
    for sieve in &explanation.sieves {
        writeln!(out, "{}", sieves::explanation_text(sieve))?;
    }
    print_last_drop(out, explanation.last_drop.as_ref())
}

/// Prints a line for each ban that contains the address; bans come before all limits.
fn print_bans(out: &mut impl Write, explanation: &Explanation) -> anyhow::Result<()> {
    for ban in &explanation.bans {
        let by = ban.by();
        let until = match (ban.ends_in_ns, ban.until) {
            (Some(ns), Some(until)) => format!("for {} more, until {until:.0}", duration(ns)),
            _ => "until it is lifted".to_owned(),
        };
        let reason = match ban.reason.as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        let (prefix, hits) = (short(ban.prefix), hits(ban.hits));
        match &ban.excluded_by {
            None => writeln!(out, "BANNED by {by} as {prefix}, {until}, {hits}{reason}")?,
            Some(list) => writeln!(
                out,
                "excluded by the list {list}: its ban as {prefix} by {by}, {until}, {hits}, has no effect{reason}"
            )?,
        }
    }
    Ok(())
}

fn print_last_drop(out: &mut impl Write, last_drop: Option<&LastDrop>) -> anyhow::Result<()> {
    if let Some(last) = last_drop {
        let [when, how_often] = last_drop_lines(last);
        writeln!(out, "\n{when} ({how_often})")?;
    }
    Ok(())
}
