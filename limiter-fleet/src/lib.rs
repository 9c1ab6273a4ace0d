//! What the nodes of a fleet share, and the rules by which they trust each other.
//!
//! * [`lease`]: shared budgets, leased from the store by demand, without ever exceeding the whole.
//! * [`bans`] and [known sources](sources): two [maps](replicated) that all nodes hold.
//! * [Policies](rollout) that one node pushes to all.
//!
//! The fleet's [key](Key) authenticates bans, known sources and policies; leases need no key, as no store can make a
//! node admit more than the whole budget.
//!
//! This crate has no clock, network, file or configured limit. Time is an argument: nanoseconds of the node's monotonic
//! clock.

#![forbid(unsafe_code)]

pub mod bans;
mod envelope;
mod heartbeat;
mod key;
pub mod lease;
mod name;
mod position;
mod refusal;
pub mod replicated;
pub mod rollout;
mod share;
pub mod sources;
mod store_address;

pub use self::{
    envelope::{Envelope, Kind},
    heartbeat::Heartbeat,
    key::{Key, KeyError, Keys},
    name::{InvalidName, Name},
    position::{InvalidPosition, Position},
    refusal::Refusal,
    share::Share,
    store_address::{Access, ServerAddress, StoreAddress, is_word as is_store_word},
};
