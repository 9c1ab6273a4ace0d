//! `limiter fleet confirm`.

use std::io::{self, Write as _};

use anyhow::bail;
use clap::Args;

use crate::{
    cli::{
        args::{OutputArgs, ReadArgs},
        output::print_json,
    },
    protocol::{Answer, Request},
};

#[derive(Debug, Args)]
pub(super) struct ConfirmArgs {
    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn confirm(args: &ConfirmArgs) -> anyhow::Result<()> {
    let Answer::Push(status) = args.read.ask_daemon(Request::EndPush { keep: true })? else {
        bail!("the daemon gave an unexpected answer");
    };
    if args.output.json {
        return print_json(&status);
    }
    writeln!(
        io::stdout(),
        "all nodes are told to keep it; `limiter fleet push`, which waits, says what they did"
    )?;
    Ok(())
}
