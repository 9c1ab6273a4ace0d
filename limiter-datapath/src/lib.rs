//! Where packets are decided on: in the kernel by the XDP program, and over plain memory by the same
//! core; and what of it outlives the daemon.

pub mod kernel;
pub mod native;
pub mod state;

/// The target of what this crate logs.
pub const LOG_TARGET: &str = env!("CARGO_CRATE_NAME");
