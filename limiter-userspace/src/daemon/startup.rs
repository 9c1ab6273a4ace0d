//! From the command line's options to an enforcing daemon, in an order that leaves nothing
//! behind when a step fails: everything that can be refused comes before the first
//! interface is touched.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use limiter_common::limit::Cost;
use thiserror::Error;
use tracing::{info, warn};

use super::Daemon;
use crate::{
    config::{self, AttachMode, Diagnostics},
    control::server::{Server, ServerError},
    datapath::{
        Attachment, Datapath, DatapathError, LogLevel, Settings,
        interface::{self, Interface, InterfaceError},
        log::{self, LogError},
        preflight::{self, PreflightError},
        wall_clock_now,
    },
    metrics::Metrics,
    policy::{CompileError, CompiledPolicy, Names, Policy},
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
    /// How long nobody may be dropped until an incident has ended.
    pub incident_quiet: Duration,
}

/// The daemon did not start; nothing is attached.
#[derive(Debug, Error)]
pub enum StartupError {
    /// Errors in the configuration, one a line.
    #[error("{0}")]
    Config(#[from] Diagnostics),
    /// The machine or the process lacks something.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// Nobody said where.
    #[error(
        "no interface to attach to: name one with -i, or in the configuration under \
         `interfaces`"
    )]
    NoInterface,
    /// An interface cannot be used.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// A byte limit that would never let a full-sized frame of the interface pass.
    #[error(
        "limit {limit} has a burst of {burst} bytes, but {interface} carries frames of {frame} \
         bytes (MTU {mtu}), which could then never pass: raise the burst to at least {frame}"
    )]
    BurstBelowFrame {
        /// The limit.
        limit: String,
        /// Its burst in bytes, or an override's.
        burst: u64,
        /// The interface.
        interface: String,
        /// Its largest frame, in bytes.
        frame: u64,
        /// Its MTU, in bytes.
        mtu: u32,
    },
    /// The policy does not fit the datapath.
    #[error(transparent)]
    Compile(#[from] CompileError),
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
    /// The program's log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Everything that runs.
pub(super) struct Started {
    pub(super) daemon: Arc<Daemon>,
    pub(super) control: Server,
    /// Ends when dropped.
    _metrics: Option<Metrics>,
}

pub(super) async fn start(options: Options) -> Result<Started, StartupError> {
    let config = config::load(&options.config, &Names::default())?;
    let compiled = CompiledPolicy::new(&config.policy)?;
    let names = if options.interfaces.is_empty() {
        config.interfaces
    } else {
        without_repeats(options.interfaces)
    };
    if names.is_empty() {
        return Err(StartupError::NoInterface);
    }
    preflight::check()?;
    let interfaces = interface::find_free(&names).await?;
    for interface in &interfaces {
        check_bursts(&config.policy, interface)?;
    }
    let control = Server::bind(&options.socket).await?;
    let listener = match options.metrics.unwrap_or(config.metrics.listen) {
        None => None,
        Some(address) => Some(
            Metrics::bind(address)
                .await
                .map_err(|source| StartupError::Metrics { address, source })?,
        ),
    };

    let log_level = if options.log_datapath {
        LogLevel::Verdicts
    } else {
        LogLevel::Off
    };
    let settings = Settings::new(config.buckets, config.offenders, log_level)?;
    let mode = options.mode.unwrap_or(config.mode);
    let mut datapath = Datapath::start(compiled, &interfaces, mode, settings)?;
    if settings.log == LogLevel::Verdicts {
        for attachment in datapath.attachments_mut() {
            log::forward(attachment)?;
        }
    }
    for attachment in datapath.attachments() {
        announce(attachment);
    }
    let daemon = Arc::new(Daemon {
        policy: config.policy,
        generation: 1,
        loaded_at: wall_clock_now(),
        datapath,
    });
    info!(
        "enforcing the policy (limits: {}, overrides: {}); control socket {}{}",
        daemon.policy.limits.len(),
        daemon.policy.override_count(),
        options.socket.display(),
        listener.as_ref().map_or_else(String::new, |listener| {
            format!("; metrics on http://{}/metrics", listener.address())
        }),
    );
    Ok(Started {
        control,
        _metrics: listener.map(|listener| listener.serve(Arc::clone(&daemon))),
        daemon,
    })
}

fn without_repeats(names: Vec<String>) -> Vec<String> {
    let mut unique = Vec::with_capacity(names.len());
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

fn announce(attachment: &Attachment) {
    let (interface, mode) = (attachment.interface.as_str(), attachment.mode.name());
    match attachment.fell_back.as_deref() {
        None => info!(interface, mode, "attached to {interface} in {mode} mode"),
        Some(reason) => warn!(
            interface,
            mode,
            reason,
            "attached to {interface} in {mode} mode, which is several times slower: the driver \
             refused native mode ({reason})"
        ),
    }
}

/// A frame larger than a byte limit's burst never passes: refuse what would cut off every
/// full-sized frame of the interface.
fn check_bursts(policy: &Policy, interface: &Interface) -> Result<(), StartupError> {
    const ETHERNET_HEADER: u64 = 14;
    let frame = u64::from(interface.mtu) + ETHERNET_HEADER;
    for limit in policy
        .limits
        .iter()
        .filter(|limit| limit.cost == Cost::Bytes)
    {
        let rates = limit.overrides.iter().map(|other| other.rate);
        for rate in limit.default.into_iter().chain(rates) {
            if rate.burst < frame {
                return Err(StartupError::BurstBelowFrame {
                    limit: limit.name.clone(),
                    burst: rate.burst,
                    interface: interface.name.clone(),
                    frame,
                    mtu: interface.mtu,
                });
            }
        }
    }
    Ok(())
}
