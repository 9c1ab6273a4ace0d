//! `limiter trusted`.

use std::{
    io::{BufWriter, Write as _},
    net::IpAddr,
};

use clap::Args;
use limiter_protocol::{
    KnownSourceQuery,
    known::{KnownQuery, MAX_SHOWN},
};

use super::print;
use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
    parse::{self, ParsedValue},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct TrustedArgs {
    /// Show the standing of the source of this address
    #[arg(value_name = "ADDRESS", value_parser = parse::address, conflicts_with = "limit")]
    address: Option<ParsedValue<IpAddr>>,

    /// Show at most this many of the newest, up to 100000
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = shown)]
    limit: usize,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

fn shown(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| *number <= MAX_SHOWN);
    number.ok_or_else(|| format!("expected a number from 0 to {MAX_SHOWN}"))
}

pub(in crate::cli) fn trusted(args: &TrustedArgs) -> anyhow::Result<()> {
    let mut out = BufWriter::new(stdout());
    if let Some(address) = args.address.as_ref().map(ParsedValue::value_with_warning) {
        let source = args.read.query(&KnownSourceQuery { address })?;
        if args.output.json {
            return print_json(&source);
        }
        print::source(&mut out, address, &source)?;
    } else {
        let list = args.read.query(&KnownQuery { limit: args.limit })?;
        if args.output.json {
            return print_json(&list);
        }
        print::list(&mut out, &list)?;
    }
    Ok(out.flush()?)
}
