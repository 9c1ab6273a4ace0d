//! The control channel between the command line and the daemon.
//!
//! A Unix socket that only root can open. One request a connection, one line of JSON each
//! way; both carry the version of the protocol.

pub mod bans;
pub mod client;
mod lock;
pub mod protocol;
pub mod server;
pub mod settings;
pub mod sieves;
#[cfg(test)]
pub(crate) mod testing;

/// Where the daemon listens unless it is told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/limiter/control.sock";
