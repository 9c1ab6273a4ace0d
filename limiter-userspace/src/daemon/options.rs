//! What the command line says.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use limiter_policy::config::AttachMode;

/// What the daemon is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The configuration file.
    pub config: PathBuf,
    /// Instead of the configuration's interfaces, when not empty.
    pub interfaces: Vec<String>,
    /// Instead of the configuration's mode.
    pub mode: Option<AttachMode>,
    /// Instead of the configuration's address for metrics; `Some(None)`: no metrics.
    pub metrics: Option<Option<SocketAddr>>,
    /// Where the control socket is.
    pub socket: PathBuf,
    /// Whether the program logs its verdicts.
    pub log_datapath: bool,
    /// Where to pin what is to outlive the daemon; `None`: nothing is.
    pub pin: Option<PathBuf>,
    /// How long each new policy waits to be confirmed; `None`: it needs not be.
    pub confirm: Option<Duration>,
    /// How long nobody may be dropped until an incident has ended.
    pub incident_quiet: Duration,
}
