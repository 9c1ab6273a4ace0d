//! `limiter sieve`.

use std::io::Write;

use clap::Args;
use limiter_protocol::SievesQuery;
use limiter_report::sieves;

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

#[derive(Debug, Args)]
pub(super) struct SieveArgs {
    /// Only the sieve with this name
    name: Option<String>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn sieve(args: &SieveArgs) -> anyhow::Result<()> {
    let found = args.read.query(&SievesQuery {
        name: args.name.clone(),
    })?;
    if args.output.json {
        return print_json(&found);
    }
    let mut out = stdout();
    if found.is_empty() {
        writeln!(out, "The policy in force has no sieves.")?;
    }
    for (index, sieve) in found.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        sieves::print(&mut out, sieve)?;
    }
    Ok(())
}
