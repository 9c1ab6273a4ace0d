//! The control channel between the command line and the daemon.
//!
//! A Unix socket that only root can open. Each connection carries one request and one response, a line of JSON each;
//! both carry the version of the protocol.

#[expect(clippy::disallowed_methods, reason = "a listener warns at times")]
pub mod accepted;
pub mod client;
mod lock;
mod operators;
pub mod server;
pub mod settings;
mod socket_file;

pub use self::socket_file::SocketFile;

/// Where the daemon listens by default.
pub const DEFAULT_SOCKET: &str = "/run/limiter/control.sock";
