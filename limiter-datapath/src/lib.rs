//! Decides on packets: in the kernel with the XDP program, and over plain memory with the same
//! core. Also stores the state that outlives the daemon.

pub mod kernel;
pub mod native;
mod standing_of;
pub mod state;

pub use standing_of::PrefixStanding;
