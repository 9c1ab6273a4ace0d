//! How pinning fails.

use std::{io, path::PathBuf};

use thiserror::Error;

use super::document::DocumentError;

/// Nothing can be pinned, or what is pinned cannot be used.
#[derive(Debug, Error)]
pub enum PinsError {
    /// Another process has the directory.
    #[error(
        "another limiter is running with what is pinned in {0}: stop it first, or pin this one's \
         elsewhere with --pin=DIRECTORY"
    )]
    InUse(PathBuf),
    /// It is an ordinary directory.
    #[error(
        "{0} is not in a BPF filesystem, where alone programs can be pinned: mount one \
         (mount -t bpf bpf /sys/fs/bpf), or name a directory in one with --pin=DIRECTORY"
    )]
    NotBpf(PathBuf),
    /// The interfaces are others: those of a container, or of the machine around it.
    #[error(
        "what is pinned in {0} is on interfaces of another network namespace: run this limiter \
         there, or pin elsewhere with --pin=DIRECTORY"
    )]
    OtherNamespace(PathBuf),
    /// Whoever looks may not.
    #[error("cannot look into {path}: {source}: run as root (sudo limiter …)")]
    Forbidden {
        /// What cannot be looked into.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot use {path} for pinning: {source}")]
    Path {
        /// What could not be made, read or removed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A document is damaged, or of another version.
    #[error("what is pinned as {path} cannot be used: {source}; `limiter detach` removes it all")]
    Document {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        source: Box<DocumentError>,
    },
}
