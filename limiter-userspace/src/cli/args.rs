//! Arguments that several commands share.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    Args,
    builder::{PathBufValueParser, TypedValueParser as _},
};
use limiter_datapath::kernel::pins::DEFAULT_DIRECTORY;

use crate::control::DEFAULT_SOCKET;

/// The configuration that a command reads, unless it or the environment names another.
const DEFAULT_CONFIG: &str = "/etc/limiter/limiter.yaml";

/// Returns what a variable of the environment says, or else `otherwise`.
fn from_environment(variable: &str, otherwise: &str) -> OsString {
    let said = env::var_os(variable).filter(|said| !said.is_empty());
    said.unwrap_or_else(|| otherwise.into())
}

/// For commands that read a configuration.
#[derive(Clone, Debug, Args)]
pub(super) struct ConfigOption {
    /// The configuration file, `-` for standard input; the files *.yaml in the folder beside it,
    /// NAME.d of NAME.yaml, are part of it. LIMITER_CONFIG sets another default
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value_os_t = PathBuf::from(from_environment("LIMITER_CONFIG", DEFAULT_CONFIG)),
        value_parser = PathBufValueParser::new().map(file_or_stdin)
    )]
    pub(super) config: PathBuf,
}

/// For commands with no other file than the configuration, whose name may stand alone.
#[derive(Clone, Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(flatten)]
    option: ConfigOption,

    /// The configuration file, as `--config` names it
    #[arg(
        value_name = "FILE",
        conflicts_with = "config",
        value_parser = PathBufValueParser::new().map(file_or_stdin)
    )]
    file: Option<PathBuf>,
}

impl ConfigArgs {
    /// Returns the configuration file.
    pub(super) fn path(&self) -> &Path {
        self.file.as_deref().unwrap_or(&self.option.config)
    }
}

fn file_or_stdin(path: PathBuf) -> PathBuf {
    if path == Path::new("-") {
        PathBuf::from("/dev/stdin")
    } else {
        path
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct ControlArgs {
    /// The daemon's control socket; LIMITER_SOCKET sets another default
    #[arg(
        long,
        value_name = "PATH",
        default_value_os_t = PathBuf::from(from_environment("LIMITER_SOCKET", DEFAULT_SOCKET))
    )]
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
