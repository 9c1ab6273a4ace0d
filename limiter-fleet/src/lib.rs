//! Shares one budget among many hosts, without ever exceeding it.
//!
//! A packet cannot wait for a network, so each host, a *node*, holds a [`Share`] of the budget: of its
//! burst and of its rate. A share grows only by as much as others have shrunk before:
//!
//! * **At home** ([`Members`]): the share that a node has by itself. Every node has a *floor*, which it
//!   never lends. The rest belongs to a few nodes, the owner's *banks*, found by a hash of the owner.
//! * **Loans** ([`Bank`](bank::Bank), [`Borrower`](borrower::Borrower)): a bank lends its unused share to
//!   nodes that ask, for a short time, and counts it as gone until then. The borrower's time begins when it
//!   asks, the bank's when it answers, so the borrower's ends first, by any two clocks that run equally
//!   fast. Clocks need not tell the same time.
//!
//! So no message makes a node exceed the budget, whether lost, late, repeated, reordered, or held back for
//! a week in transit. A crash loses only the lent shares, until the loans are over. `docs/fleet-bound.md` has the
//! proof; `tests/simulation/` tries it.
//!
//! Loans between two nodes are renewed together, by one question for all of them ([`Renewal`]): so nodes
//! exchange notes about a budget only when something changes.
//!
//! Owners are many, and most of them quiet: a node forgets a budget once nothing of it is lent or borrowed,
//! and starts again from its home share when a node needs it ([`Memory`]).
//!
//! Nodes write to each other in [letters](Letter) of [`Note`]s. The fleet's [key](Key) seals them together
//! with the configuration that all nodes must share ([`Seal`]): a letter from a node with another key,
//! other members or other terms is refused.
//!
//! Besides budgets, nodes share [bans], [known sources](sources) that one of them has proven, and
//! [policies](pushes) that one of them pushes to all.
//!
//! This crate has no clock, network, file or configured limit. Time is an argument: nanoseconds of the
//! node's monotonic clock.

#![forbid(unsafe_code)]

mod bank;
pub mod bans;
mod borrower;
mod bucket;
mod envelope;
mod fair;
mod key;
mod letter;
mod members;
mod memory;
mod message;
mod name;
mod names;
mod node;
pub mod pushes;
mod renewals;
mod seal;
mod share;
pub mod sources;
mod terms;

pub use self::{
    bucket::Bucket,
    envelope::{Keys, OpenError},
    key::{Key, KeyError},
    letter::{Budget, Letter, LimitName, Note, Owner},
    members::{Members, MembersError, NodeId, Stakes, floor_among},
    memory::{Header, Hearing, Memory},
    message::{Ask, Boot, Loan, Message, Renewal},
    name::{InvalidName, Name},
    node::{InForce, Node},
    seal::{MOST_BYTES, MOST_NOTES, Seal},
    share::Share,
    terms::Terms,
};
