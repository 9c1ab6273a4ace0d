//! The control channel between the command line and the daemon.
//!
//! A Unix socket that only root can open. Each connection carries one request and one response, a line of JSON each;
//! both carry the version of the protocol.

pub mod client;
mod lock;
mod operators;
pub mod server;
pub mod settings;
mod socket_file;

pub(crate) use self::socket_file::SocketFile;

/// Where the daemon listens by default.
pub const DEFAULT_SOCKET: &str = "/run/limiter/control.sock";
