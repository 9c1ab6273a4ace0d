//! `limiter fleet`.

mod confirm;
mod push;
mod status;

use clap::{Args, Subcommand};

use crate::cli::args::{OutputArgs, ReadArgs};

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Show the store, the nodes, the bans of other nodes, and what was refused
    Status(QueryArgs),
    /// Push a policy to all nodes: first to a few, then to the others; unconfirmed, it is taken back
    Push(push::PushArgs),
    /// Keep the policy that a node pushes, on all nodes
    Confirm(QueryArgs),
    /// Take back the policy that a node pushes, on all nodes
    Revert(QueryArgs),
}

#[derive(Debug, Args)]
struct QueryArgs {
    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn fleet(args: &FleetArgs) -> anyhow::Result<()> {
    match &args.command {
        FleetCommand::Status(QueryArgs { read, output }) => status::status(read, output),
        FleetCommand::Push(args) => push::push(args),
        FleetCommand::Confirm(QueryArgs { read, output }) => confirm::end(read, output, true),
        FleetCommand::Revert(QueryArgs { read, output }) => confirm::end(read, output, false),
    }
}
