//! Decides on packets in the kernel. Also stores the state that outlives the daemon.

pub mod kernel;
pub mod state;
