//! Shares one budget among many hosts, without ever exceeding it.
//!
//! A packet cannot wait for a network, so each host, a *node*, holds a [`Share`] of the budget: of its
//! burst and of its rate. A share grows only by as much as others have shrunk before:
//!
//! * **At home** ([`Members`]): the share that a node has by itself. Every node has a *floor*, which it
//!   never lends. The rest belongs to a few nodes, the owner's *banks*, found by a hash of the owner.
//! * **Loans** ([`Bank`](bank::Bank), [`Borrower`](borrower::Borrower)): a bank lends its unused share to
//!   nodes that request it, for a short time, and counts it as gone until then. The borrower's time begins
//!   when it sends its request, the bank's when it replies, so the borrower's ends first, by any two clocks
//!   that run equally fast. Clocks need not show the same time.
//!
//! So no message makes a node exceed the budget, whether lost, late, repeated, reordered, or held back for
//! a week in transit. A crash loses only the lent shares, until the loans are over. `docs/fleet-bound.md` has the
//! proof; `tests/simulation/` tries it.
//!
//! Loans between two nodes are renewed together, by one request for all of them ([`Renewal`]): so nodes
//! exchange entries about a budget only when something changes.
//!
//! Owners are many, and most of them quiet: a node forgets a budget once nothing of it is lent or borrowed,
//! and starts again from its home share when a node needs it ([`Memory`]).
//!
//! Nodes write to each other in [messages](Message) of [`Entry`]s. The fleet's [key](Key) authenticates
//! them together with the configuration that all nodes must share ([`Authenticator`]): a message from a
//! node with another key, other members or other terms is refused.
//!
//! Besides budgets, nodes share [bans] and [known sources](sources), each as a [replicated map](replicated),
//! and [policies](pushes) that one of them pushes to all.
//!
//! This crate has no clock, network, file or configured limit. Time is an argument: nanoseconds of the
//! node's monotonic clock.

#![forbid(unsafe_code)]

mod authenticator;
mod bank;
pub mod bans;
mod borrower;
mod bucket;
mod envelope;
mod fair;
mod heartbeat;
mod key;
mod members;
mod memory;
mod message;
mod name;
mod names;
mod node;
mod payload;
pub mod pushes;
mod renewals;
pub mod replicated;
mod share;
pub mod sources;
mod terms;

pub use self::{
    authenticator::{Authenticator, MOST_BYTES, MOST_ENTRIES},
    bucket::Bucket,
    envelope::{Envelope, Keys, Kind, OpenError},
    heartbeat::{Heartbeat, StreamPlace},
    key::{Key, KeyError},
    members::{Members, MembersError, NodeId, Stakes, floor_among},
    memory::{Header, Memory, Relevance},
    message::{Budget, Entry, LimitName, Message, Owner},
    name::{InvalidName, Name},
    node::{InForce, Node},
    payload::{Boot, Loan, Payload, Renewal, Request},
    share::Share,
    terms::Terms,
};
