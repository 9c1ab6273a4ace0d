//! The store through which the nodes of a fleet hear of each other: Valkey, or Redis since 6.2.
//!
//! It carries bytes, and knows nothing of what they say: `limiter-fleet` seals and checks them. A fleet
//! has these keys there:
//!
//! * `limiter:{NAME}:bans`, a hash: the last word about each ban, for nodes that begin;
//! * `limiter:{NAME}:news`, a stream: what was said since, for those that listen;
//! * `limiter:{NAME}:nodes`, a hash: the nodes' signs of life;
//! * `limiter:{NAME}:sources`, a hash: what each node says of known sources, in some parts, for nodes that begin;
//! * `limiter:{NAME}:sources-news`, a stream: what has changed of that;
//! * `limiter:{NAME}:push`, a hash: a file that is pushed to all, and what is to be done with it;
//! * `limiter:{NAME}:answers`, a hash: what each node says of that;
//! * `limiter:letters:{NAME:NODE}`, a stream for each node: what others say to it alone.
//!
//! In a cluster, all keys with the same text in braces are on one server: so letters are spread over its servers.
//!
//! The commands are in [`Store`], [`Inbox`], [`Outbox`], [`Sources`], `stream.rs` and `find.rs` alone, and `docs/fleet.md` has the table of them.
//!
//! What must not exist here: a limit, a ban, a key of the fleet's, a decision.

#![forbid(unsafe_code)]

mod access;
mod ask;
mod error;
mod find;
mod position;
mod post;
mod pushes;
mod sources;
mod store;
mod stream;

pub use self::{
    access::{Access, ConnectError, Place, Tls},
    error::{Denied, StoreError},
    position::Position,
    post::{Inbox, Outbox, Sent},
    sources::{SomeSlots, Sources},
    store::{Snapshot, Store},
    stream::{MOST_AT_ONCE, News, WAIT},
};
