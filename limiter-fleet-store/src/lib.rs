//! The store through which the nodes of a fleet communicate: Valkey, or Redis since 6.2.
//!
//! It carries opaque bytes: `limiter-fleet` authenticates and checks them. A fleet has these keys there:
//!
//! * `limiter:{NAME}:bans`, a hash: the last update about each ban, for nodes that start;
//! * `limiter:{NAME}:news`, a stream: new updates, for running nodes;
//! * `limiter:{NAME}:nodes`, a hash: the nodes' heartbeats;
//! * `limiter:{NAME}:sources`, a hash: each node's known sources, for nodes that start;
//! * `limiter:{NAME}:sources-news`, a stream: changes of known sources;
//! * `limiter:{NAME}:push`, a hash: the file of a rollout, and its current command;
//! * `limiter:{NAME}:answers`, a hash: each node's reply to the command;
//! * `limiter:{NAME}:leases`, a hash: the nodes' leases of shared budgets.
//!
//! In a cluster, all keys with the same text in braces are on one server.
//!
//! Only [`Store`], [`Leases`], `stream.rs` and `connect.rs` send commands;
//! `docs/fleet.md` has the table of them.
//!
//! This crate has no limit, ban, fleet key or decision.

#![forbid(unsafe_code)]
#![expect(
    clippy::missing_errors_doc,
    reason = "every function fails alike: as `StoreError` describes, and then the outcome of a write is unknown"
)]

mod bounded;
mod connect;
mod leases;
mod query;
mod rollout;
mod store;
mod stream;

pub use self::{
    leases::Leases,
    query::StoreError,
    store::{Map, Page, Store},
    stream::News,
};
