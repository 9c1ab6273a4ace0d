//! `limiter fleet`.

mod status;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct FleetArgs {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Show the store, the nodes, the bans of other nodes, and what was refused
    Status(status::StatusArgs),
}

pub(super) fn fleet(args: &FleetArgs) -> anyhow::Result<()> {
    match &args.command {
        FleetCommand::Status(args) => status::status(args),
    }
}
