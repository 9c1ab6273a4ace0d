//! Replays a capture through a policy: every packet is decided at its own time, by the native engine or by the
//! program in the kernel.
//!
//! `engine` decides, `judge` adds the strictest limit's state; `summary`, `sources`, `timeline` and `usage`
//! aggregate the results for display. Memory does not grow with the capture's length, except that the native
//! engine keeps a bucket for each source.

mod bans;
mod connection;
mod connections;
pub mod engine;
mod follower;
mod handshakes;
mod judge;
mod pressure;
mod sources;
mod summary;
mod timeline;
mod usage;

pub use self::{
    bans::{ReplayedBan, ReplayedBans},
    connections::ConnectionCounts,
    handshakes::HandshakeCounts,
    judge::{
        Level, Replay, ReplayError, ReplayedPacket, SieveReplay, StrictestLimit, TimeRangeError,
        limit_indices,
    },
    pressure::PressureSummary,
    sources::{DroppedSource, Sources},
    summary::Summary,
    timeline::{Fate, Timeline},
    usage::Usage,
};
