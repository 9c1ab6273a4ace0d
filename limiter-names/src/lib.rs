//! Reads the names that clients ask for from the first bytes of their flows.
//!
//! A client that opens a flow mostly says in clear text, or under a key that anybody can compute,
//! which name it asks for: TLS and QUIC by the server name of the ClientHello, HTTP by its `Host` or
//! `:authority`. [`Reader`] takes pieces of flows, in any order, and gives the [`Outcome`] of each;
//! [`Follower`] keeps the outcomes of flows that live.
//!
//! ```text
//! pieces ─▶ flow table ─▶ tcp (reassembly) ─▶ stream ─▶ tls ─▶ hello ─▶ name
//!                                                   └▶ http ──────────▶
//!                      └▶ quic (decryption) ─────────────────▶ hello ─▶
//! ```
//!
//! Every byte comes from whoever can send a packet. Nothing here depends on a machine, a policy or a
//! clock (times are arguments), memory is [bounded](Settings), and the most that hostile bytes can do
//! is have their own flow read wrongly.

#![forbid(unsafe_code)]

mod budget;
mod flow;
mod follower;
mod heard;
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
    follower::{Change, Followed, Follower, FollowerSettings},
    name::{Name, NameError},
    outcome::{Application, Applications, Found, How, NoName, Outcome},
    reader::{Forgotten, Reader},
    settings::Settings,
};
