//! The source of lists for `limiter lists`: a configuration file, or the daemon.

use std::path::PathBuf;

use clap::Args;
use limiter_daemon::MapCall;
use limiter_datapath::kernel::wall_clock_now;
use limiter_policy::config::{self, Config};

use crate::cli::args::{OutputArgs, ReadArgs};

/// Where the lists are read from.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Use the lists of this configuration file instead of the lists in force
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

impl SourceArgs {
    /// Answers from the given configuration, otherwise from the policy in force.
    pub(super) fn query<C: MapCall>(
        &self,
        call: &C,
        of_config: impl FnOnce(&Config) -> C::Response,
    ) -> anyhow::Result<C::Response> {
        if let Some(path) = &self.config {
            return Ok(of_config(&config::load(path, wall_clock_now())?));
        }
        self.read.query(call)
    }
}
