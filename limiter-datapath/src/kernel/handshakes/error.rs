//! The reasons why handshakes are not recorded.

use std::{io, path::PathBuf};

use aya::programs::ProgramError;
use thiserror::Error;

use crate::kernel::{DatapathError, chain::chain, pins::PinsError};

/// Handshakes prove no source, although the policy wants it. Visits and retries count as before.
#[derive(Debug, Error)]
pub enum HandshakesError {
    /// Only version 1 cgroups are mounted.
    #[error(
        "there is no root cgroup of version 2: mount one (mount -t cgroup2 none DIRECTORY), which \
         may be beside cgroups of version 1"
    )]
    NoCgroup,
    /// The cgroup cannot be found or opened.
    #[error("cannot open {path}: {source}")]
    Cgroup {
        /// The path that cannot be opened.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel has no cookies for network namespaces.
    #[error("this kernel has no cookies for network namespaces, which Linux 5.14 has")]
    NoCookie,
    /// The program's maps cannot be made or opened.
    #[error("{}", chain(.0))]
    Maps(#[source] Box<DatapathError>),
    /// The verifier refused the program.
    #[error(
        "the kernel refused the program that records handshakes, which needs Linux 5.15: {}",
        chain(.0)
    )]
    Verify(#[source] ProgramError),
    /// The kernel did not attach the program.
    #[error("cannot attach the program that records handshakes to the root cgroup: {}{}", .0, remedy(.0))]
    Attach(#[source] io::Error),
    /// The link cannot be pinned.
    #[error(transparent)]
    Pins(#[from] PinsError),
    /// The program is pinned, but not on the cgroup.
    #[error("the program that records handshakes is not on the root cgroup")]
    NotAttached,
}

impl From<DatapathError> for HandshakesError {
    fn from(error: DatapathError) -> Self {
        Self::Maps(Box::new(error))
    }
}

/// The operator's remedy for an error of attaching.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; perhaps another program is there that allows none beside it (bpftool cgroup show \
             DIRECTORY)"
        }
        io::ErrorKind::ArgumentListTooLong => {
            "; the kernel takes 64 programs on one cgroup: free one (bpftool cgroup show DIRECTORY)"
        }
        _ => "",
    }
}
