//! The errors of pinning.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::document::DocumentError;

/// Pinning fails, or the pins cannot be used.
#[derive(Debug, Error)]
pub enum PinsError {
    /// Another process has locked the directory.
    #[error(
        "another limiter is running with the pins in {0}: stop it first, or pin elsewhere with \
         --pin=DIRECTORY"
    )]
    InUse(PathBuf),
    /// The directory is not in a BPF filesystem.
    #[error(
        "{0} is not in a BPF filesystem, where programs must be pinned: mount one \
         (mount -t bpf bpf /sys/fs/bpf), or name a directory in one with --pin=DIRECTORY"
    )]
    NotBpf(PathBuf),
    /// Another user has made the directory, or a parent of it.
    #[error(
        "{path} belongs to the user {owner}, who could put programs of their own in the place of pins: \
         remove it, or pin elsewhere with --pin=DIRECTORY"
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// The user's number.
        owner: u32,
    },
    /// Other users may write to the directory, or to a parent of it.
    #[error(
        "{path} may be written by other users (mode {mode:04o}), who could put programs of their own in \
         the place of pins: `chmod 700` it, or mount the BPF filesystem with `mount -o mode=700`"
    )]
    Writable {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The path leads to a file, a pin or a symbolic link.
    #[error("{0} is not a directory: remove it, or pin elsewhere with --pin=DIRECTORY")]
    NoDirectory(PathBuf),
    /// The pinned interfaces belong to a container, or to the machine around it.
    #[error(
        "the pins in {0} are for interfaces of another network namespace: run this limiter \
         there, or pin elsewhere with --pin=DIRECTORY"
    )]
    OtherNamespace(PathBuf),
    /// The user may not read the directory.
    #[error("cannot look into {path}: {source}: run as root (sudo limiter …)")]
    Forbidden {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused the operation.
    #[error("cannot use {path} for pinning: {source}")]
    Path {
        /// The path that cannot be made, read or removed.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A document is damaged, or of another version.
    #[error("the pin {path} cannot be used: {source}; `limiter detach` removes all pins")]
    Document {
        /// The document's path.
        path: PathBuf,
        /// The reason.
        source: Box<DocumentError>,
    },
}

/// Wraps I/O errors with a path.
pub(super) fn path_error(path: &Path) -> impl Fn(io::Error) -> PinsError + use<> {
    let path = path.to_owned();
    move |source| PinsError::Path {
        path: path.clone(),
        source,
    }
}

/// Wraps document errors with a path.
pub(super) fn document_error(path: &Path) -> impl Fn(DocumentError) -> PinsError + use<> {
    let path = path.to_owned();
    move |source| PinsError::Document {
        path: path.clone(),
        source: Box::new(source),
    }
}
