//! Reads the names that clients ask for from the first bytes of their flows.
//!
//! A client that opens a flow usually sends the name of its server in clear text, or under a key that any observer can
//! compute: TLS and QUIC by the server name of the ClientHello, HTTP by its `Host` or `:authority`. [`Reader`] takes
//! pieces of flows, in any order, and gives the [`Outcome`] of each; [`Follower`] keeps the outcomes of live flows.
//!
//! ```text
//! pieces ─▶ flow table ─▶ tcp (reassembly) ─▶ stream ─▶ tls ─▶ hello ─▶ name
//!                                                   └▶ http ──────────▶
//!                      └▶ quic (decryption) ─────────────────▶ hello ─▶
//! ```
//!
//! Any sender on the network can write these bytes. The code depends on no machine, policy or clock (times are
//! arguments), memory is [bounded](Settings), and the worst that hostile bytes can do is have their own flow read
//! wrongly.

#![forbid(unsafe_code)]

mod budget;
mod first_bytes;
mod flow;
mod follower;
mod hello;
mod http;
mod name;
mod outcome;
mod pieces;
mod quic;
mod reader;
mod settings;
mod stream;
mod table;
mod tcp;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;

pub use self::{
    flow::{Flow, Protocol, Segment},
    follower::{Change, Follower, FollowerSettings, PieceCounts},
    name::{Name, NameError},
    outcome::{Application, Applications, FoundName, NameSource, NoName, Outcome},
    reader::{DiscardCounts, Reader},
    settings::Settings,
};
