//! `limiter confirm`.

use std::io::Write as _;

use clap::Args;
use limiter_protocol::{Confirm, ConfirmedPolicy};
use serde_json::json;

use super::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

#[derive(Debug, Args)]
pub(super) struct ConfirmArgs {
    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn confirm(args: &ConfirmArgs) -> anyhow::Result<()> {
    let ConfirmedPolicy { generation } = args.read.query_daemon(Confirm)?;
    if args.output.json {
        return print_json(&json!({ "generation": generation }));
    }
    writeln!(stdout(), "policy {generation} stays in force")?;
    Ok(())
}
