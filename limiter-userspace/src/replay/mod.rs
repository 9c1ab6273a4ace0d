//! What a policy does to a capture: every packet at its own time through the decision, by the
//! native engine or by the program in the kernel.
//!
//! `capture` reads pcap and pcapng, `engine` decides, `judge` adds what the strictest limit
//! tells; `summary`, `sources`, `timeline` and `usage` gather it for people. Memory is
//! constant in the capture's length; the native engine keeps a bucket for each source.

mod bans;
pub mod capture;
pub mod engine;
mod frame;
mod judge;
mod pressure;
mod sources;
mod summary;
mod timeline;
mod usage;

pub use self::{
    bans::{ReplayedBan, ReplayedBans},
    frame::CapturedFrame,
    judge::{Judged, OutOfTime, Replay, ReplayError, SieveReplay, Strictest, slots},
    pressure::UnderPressure,
    sources::{DroppedSource, Sources},
    summary::Summary,
    timeline::{Fate, Timeline},
    usage::Usage,
};
