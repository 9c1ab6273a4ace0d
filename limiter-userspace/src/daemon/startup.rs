//! From the command line's options to an enforcing daemon, in an order that leaves nothing
//! behind when a step fails: everything that can be refused comes before the first
//! interface is touched.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::{
    Daemon,
    candidate::{CandidateError, Known, Read},
    reload::{self, ReloadError, Reply},
    state::{Resumed, StateKeeper},
    watch::files::FileWatch,
};
use crate::{
    config::{self, AttachMode},
    control::server::{Server, ServerError},
    datapath::{
        Adopted, Attachment, Datapath, DatapathError, LogLevel, Previous, Settings,
        interface::InterfaceError,
        pins::{Pins, PinsError},
        preflight::{self, PreflightError},
    },
    metrics::{Listener, Metrics},
    policy::CompileError,
};

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

/// The daemon did not start; nothing was attached or changed.
#[derive(Debug, Error)]
pub enum StartupError {
    /// The configuration cannot be put in force.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// The machine or the process lacks something.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// An interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Nothing can be pinned.
    #[error(transparent)]
    Pins(#[from] PinsError),
    /// The control socket is not to be had.
    #[error(transparent)]
    Control(#[from] ServerError),
    /// The metrics' port is not to be had.
    #[error(
        "cannot serve metrics on {address}: {source}; choose another address with --metrics or \
         `metrics: {{listen: …}}`, or switch them off with `off`"
    )]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// The policy could not be put in force.
    #[error("{0}")]
    Reload(String),
}

impl From<ReloadError> for StartupError {
    fn from(error: ReloadError) -> Self {
        Self::Reload(error.to_string())
    }
}

/// Everything that runs.
pub(super) struct Started {
    pub(super) daemon: Arc<Daemon>,
    pub(super) control: Server,
    pub(super) requests: mpsc::Receiver<Reply>,
    /// The configuration's files.
    pub(super) files: FileWatch,
    /// Ends when dropped.
    _metrics: Option<Metrics>,
}

pub(super) async fn start(options: Options) -> Result<Started, StartupError> {
    let adopted = match &options.pin {
        Some(directory) => {
            preflight::check()?;
            Some(Datapath::adopt(Pins::take(directory)?)?)
        }
        None => None,
    };
    let ours = match &adopted {
        Some(Adopted::Datapath(datapath, _)) => datapath.program_ids(),
        Some(Adopted::Links(_, attachments)) => attachments
            .iter()
            .filter_map(Attachment::program_id)
            .collect(),
        None => Vec::new(),
    };
    // Before it is read: no change is missed.
    let config = Some(options.config.clone()).filter(|path| !config::is_descriptor(path));
    let mut files = FileWatch::new(config.into_iter());
    let mut state = None;
    let mut resumed = None;
    let read = Read::load(&options.config, |config| {
        state = config.state.clone().map(StateKeeper::new);
        if let Some(Adopted::Datapath(datapath, _)) = &adopted {
            return Known::of(datapath.manifest());
        }
        resumed = state.as_ref().and_then(Resumed::load);
        resumed.as_ref().map(Resumed::known).unwrap_or_default()
    });
    let read = match (read, resumed.take()) {
        (Err(CandidateError::Compile(CompileError::TooManyUnits(error))), Some(resumed)) => {
            resumed.give_up(error);
            Read::load(&options.config, |_| Known::default())?
        }
        (read, kept) => {
            resumed = kept;
            read?
        }
    };
    files.replace(read.files().iter().cloned());
    let interfaces = read.interface_names(&options)?;
    preflight::check()?;
    let candidate = read.check(interfaces, &ours).await?;
    if !options.interfaces.is_empty() {
        candidate.all_there()?;
    }
    let control = Server::bind(&options.socket).await?;
    let listener = match options.metrics.unwrap_or(candidate.config.metrics.listen) {
        None => None,
        Some(address) => Some(
            Metrics::bind(address)
                .await
                .map_err(|source| StartupError::Metrics { address, source })?,
        ),
    };

    let settings = || {
        let config = &candidate.config;
        let settings = Settings::new(config.buckets, config.offenders, LogLevel::Off)?;
        Ok::<_, DatapathError>(match &resumed {
            Some(resumed) => resumed.settings(settings),
            None => settings,
        })
    };
    let datapath = match adopted {
        Some(Adopted::Datapath(datapath, previous)) => take_over(datapath, previous)?,
        Some(Adopted::Links(pins, attachments)) => {
            for version in pins.other_versions()? {
                warn!(
                    "buckets, counters and offenders of ABI {version}, which are pinned, cannot be \
                     read by this version: they begin anew"
                );
            }
            Datapath::with_pins(settings()?, pins, attachments)?
        }
        None => Datapath::new(settings()?)?,
    };
    let (reloads, requests) = reload::Requests::new();
    let metrics = listener.as_ref().map(Listener::address);
    let daemon = Arc::new(Daemon::new(options, metrics, state, reloads, datapath));
    reload::put_in_force(&daemon, candidate, resumed).await?;
    {
        let datapath = daemon.datapath();
        let policy = &datapath.manifest().policy;
        info!(
            "enforcing the policy (limits: {}, overrides: {}); control socket {}{}{}",
            policy.limits.len(),
            policy.override_count(),
            daemon.options.socket.display(),
            listener.as_ref().map_or_else(String::new, |listener| {
                format!("; metrics on http://{}/metrics", listener.address())
            }),
            datapath.pins().map_or_else(String::new, |pins| {
                format!("; pinned in {}", pins.directory().display())
            }),
        );
    }
    Ok(Started {
        control,
        requests,
        files,
        _metrics: listener.map(|listener| listener.serve(Arc::clone(&daemon))),
        daemon,
    })
}

/// Goes on with what is pinned. A policy that was not settled, because nobody confirmed it or the
/// daemon was killed while it put it in force, gives way to the one before it.
fn take_over(
    mut datapath: Datapath,
    previous: Option<Previous>,
) -> Result<Datapath, DatapathError> {
    let generation = datapath.manifest().generation;
    match previous {
        None => info!(
            generation,
            "taking over policy {generation}, which is pinned"
        ),
        Some(previous) => {
            let before = previous.manifest().generation;
            datapath.revert(previous)?;
            let instead = match before {
                0 => "there was none before it".to_owned(),
                before => format!("taking over policy {before}"),
            };
            warn!(
                generation,
                "policy {generation}, which is pinned, was not confirmed or not wholly put in \
                 force: {instead}"
            );
        }
    }
    Ok(datapath)
}
