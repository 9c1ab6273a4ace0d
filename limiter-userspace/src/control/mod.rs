//! The control channel between the command line and the daemon.
//!
//! A Unix socket that only root can open. One request a connection, one line of JSON each
//! way; both carry the version of the protocol.

pub mod client;
mod lock;
pub mod server;
pub mod settings;

/// Where the daemon listens unless it is told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/limiter/control.sock";
