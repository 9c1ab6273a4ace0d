//! How the daemon fails.

use std::{io, net::SocketAddr};

use limiter_datapath::kernel::{
    DatapathError, interface::InterfaceError, pins::PinsError, preflight::PreflightError,
};
use limiter_policy::policy::CompileError;
use thiserror::Error;
use tokio::task::JoinError;

use super::candidate::CandidateError;
use crate::control::server::ServerError;

/// Why the daemon ended without being told to.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// It did not get as far as running; it has attached and changed nothing.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// Nobody confirmed its first policy.
    #[error(
        "the policy was not confirmed in time (limiter confirm): there was none before it, so \
         everything is detached"
    )]
    NotConfirmed,
    /// What is pinned could not be removed.
    #[error(transparent)]
    Detach(#[from] DatapathError),
    /// Not even the beginning.
    #[error("cannot begin: {0}")]
    Runtime(#[source] io::Error),
    /// The system would not deliver signals.
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
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
    /// There is no room for another thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The policy could not be put in force.
    #[error(transparent)]
    Reload(#[from] ReloadError),
}

/// The policy in force stays as it is.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The new one cannot be put in force.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// Its lists do not fit the datapath.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The kernel does not tell the interfaces.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// The one before waits to be confirmed.
    #[error(
        "the policy in force waits to be confirmed: `limiter confirm` first, or wait until it is \
         reverted"
    )]
    Unconfirmed,
    /// It came to no end.
    #[error("putting the policy in force failed: {0}")]
    Task(#[from] JoinError),
}
