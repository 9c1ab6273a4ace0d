//! Arguments that several commands share.

use std::path::PathBuf;

use clap::Args;
use limiter_datapath::kernel::pins::DEFAULT_DIRECTORY;

use crate::control::DEFAULT_SOCKET;

#[derive(Clone, Debug, Args)]
pub(super) struct ControlArgs {
    /// The daemon's control socket
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub(super) socket: PathBuf,
}

/// For commands that can also be answered from what is pinned.
#[derive(Clone, Debug, Args)]
pub(super) struct ReadArgs {
    #[command(flatten)]
    pub(super) control: ControlArgs,

    /// Where `limiter run --pin` has pinned its state, used when no daemon runs
    #[arg(long, value_name = "DIRECTORY", default_value = DEFAULT_DIRECTORY)]
    pub(super) pin: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}
