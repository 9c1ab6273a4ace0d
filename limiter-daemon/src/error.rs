//! The daemon's errors.

use std::{error, fs::File, io, net::SocketAddr, path::PathBuf, process};

use limiter_datapath::kernel::{
    DatapathError, interface::InterfaceError, pins::PinsError, preflight::PreflightError,
};
use limiter_policy::{config::ListenAddress, fleet::SecretFileError, policy::CompileError};
use limiter_protocol::control::server::ServerError;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;
use tokio::task::JoinError;

use super::candidate::CandidateError;

/// Why the daemon ended without being told to.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// Startup failed; nothing was attached or changed.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// The first policy was not confirmed.
    #[error(
        "the policy was not confirmed in time (limiter confirm): there was none before it, so \
         everything is detached"
    )]
    NotConfirmed,
    /// Its pins are gone, and could not be restored.
    #[error(
        "its pins are gone, and there can be no others: it is detached, and every packet passes"
    )]
    NotPinned,
    /// The pinned objects could not be removed.
    #[error(transparent)]
    Detach(#[from] DatapathError),
    /// The async runtime could not start.
    #[error("cannot start the async runtime: {0}")]
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
    /// The control socket is unavailable.
    #[error(transparent)]
    Control(#[from] ServerError),
    /// The page's port is unavailable.
    #[error(
        "cannot show the page on {address}: {source}; choose another address with `page: {{listen: …}}`, \
         or switch it off with `page: off`"
    )]
    Page {
        /// Where.
        address: ListenAddress,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The metrics port is unavailable.
    #[error(
        "cannot serve metrics on {address}: {source}; choose another address with --metrics or \
         `metrics: {{listen: …}}`, or switch them off with `off`"
    )]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The fleet's key cannot be read.
    #[error("the file '{}' {source}", file.display())]
    FleetKeys {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: SecretFileError,
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

/// No deferred feed was put in force.
#[derive(Debug, Error)]
pub(super) enum AcceptError {
    /// The policy waits to be confirmed.
    #[error(
        "the policy in force waits to be confirmed: run `limiter confirm` first, or wait until it \
         is reverted"
    )]
    Unconfirmed,
    /// No such list.
    #[error("there is no list '{0}' in force")]
    UnknownList(String),
    /// None of the list's files has this content.
    #[error(
        "no content with that digest waits to be accepted for list {0}: look at `limiter lists` again"
    )]
    NothingDeferred(String),
    /// A file has changed since.
    #[error("{path} was not accepted as it is now: it {why}", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Why it is not in force, in the words of its report, which outlives the daemon.
        why: String,
    },
}

/// Confirming failed.
#[derive(Debug, Error)]
pub(super) enum ConfirmError {
    /// No policy waits for it.
    #[error("no policy waits to be confirmed")]
    Nothing,
    /// The fleet confirms it.
    #[error("the fleet pushes the policy in force: `limiter fleet confirm` keeps it on all nodes")]
    Rollout,
    /// The file could not be written to the path that the next start reads.
    #[error("the file '{}' cannot be written: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The policy before it could not be removed.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// A node's work for a rollout fails.
#[derive(Debug, Error)]
pub(super) enum StepError {
    /// The configuration has changed since the daemon started.
    #[error("its configuration says no more that the file may be replaced")]
    NotAccepted,
    /// The guard is against it.
    #[error("the guard is against it: {0}")]
    Guard(String),
    /// The guard cannot tell which sessions it would lock out.
    #[error("the guard cannot find the addresses that it would lock out: {0}")]
    Blind(String),
    /// The file cannot be written to the path that the next start reads.
    #[error("the file '{}' cannot be written: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// After a restart, the node would not know the rollout.
    #[error("the push cannot be remembered: {0}")]
    Memory(io::Error),
    /// It cannot be kept.
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    /// It cannot be put in force.
    #[error(transparent)]
    Reload(#[from] ReloadError),
}

/// A change failed; the policy in force stays as it is.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The new configuration cannot be put in force.
    #[error(transparent)]
    Candidate(#[from] CandidateError),
    /// Its lists do not fit the datapath.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The kernel does not list the interfaces.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// The policy in force waits to be confirmed.
    #[error(
        "the policy in force waits to be confirmed: run `limiter confirm` first, or wait until it \
         is reverted"
    )]
    Unconfirmed,
    /// The process has no descriptor left.
    #[error(
        "the daemon needs to open more files than it may (RLIMIT_NOFILE is {most}): raise LimitNOFILE \
         in its unit, or enter `prlimit --pid={pid} --nofile=16384`"
    )]
    Descriptors {
        /// The most descriptors of the process.
        most: String,
        /// The process's id.
        pid: u32,
    },
    /// The task panicked or was cancelled.
    #[error("putting the policy in force failed: {0}")]
    Task(#[from] JoinError),
}

impl ReloadError {
    /// Returns the error if there is no free descriptor: without one, not even the reason could be
    /// found.
    pub(super) fn for_lack_of_descriptors() -> Result<(), Self> {
        match File::open("/dev/null") {
            Err(error) if is_lack_of_descriptors(&error) => Err(Self::descriptors()),
            _ => Ok(()),
        }
    }

    /// Says plainly if it was for lack of descriptors.
    pub(super) fn detect_lack_of_descriptors(self) -> Self {
        let mut cause: Option<&dyn error::Error> = Some(&self);
        while let Some(error) = cause {
            if error.downcast_ref().is_some_and(is_lack_of_descriptors) {
                return Self::descriptors();
            }
            cause = error.source();
        }
        self
    }

    fn descriptors() -> Self {
        let most = getrlimit(Resource::Nofile).current;
        Self::Descriptors {
            most: most.map_or_else(|| "unlimited".to_owned(), |most| most.to_string()),
            pid: process::id(),
        }
    }
}

fn is_lack_of_descriptors(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}
