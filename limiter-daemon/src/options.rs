//! The command line's options.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use limiter_policy::{config::AttachMode, interface::InterfaceName};

/// The options that the daemon is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The configuration file.
    pub config: PathBuf,
    /// Override the configuration's interfaces, unless empty.
    pub interfaces: Vec<InterfaceName>,
    /// Overrides the configuration's mode.
    pub mode: Option<AttachMode>,
    /// Overrides the configuration's address for metrics; `Some(None)`: no metrics.
    pub metrics: Option<Option<SocketAddr>>,
    /// Where the control socket is.
    pub socket: PathBuf,
    /// Whether the program logs its verdicts.
    pub log_datapath: bool,
    /// The directory of pins, which outlive the daemon; `None`: nothing is pinned.
    pub pin: Option<PathBuf>,
    /// How long each new policy waits to be confirmed; `None`: it needs no confirmation.
    pub confirm: Option<Duration>,
    /// How long an incident lasts after its last drop.
    pub incident_quiet: Duration,
}
