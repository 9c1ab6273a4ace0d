//! Shares one budget among many hosts, without ever exceeding it.
//!
//! A packet cannot wait for a network, so each host, a *node*, holds a [`Share`] of the budget: of its
//! burst and of its rate. A share grows only by as much as others have shrunk before:
//!
//! * **At home** ([`Members`]): what a node has by itself. Every node has a *floor*, which it never
//!   lends. The rest belongs to a few nodes, the owner's *banks*, found by a hash of the owner.
//! * **Loans** ([`Bank`](bank::Bank), [`Borrower`](borrower::Borrower)): a bank lends what it does not
//!   need to those who ask, for a short time, and counts it as gone until then. The borrower's time
//!   begins when it asks, the bank's when it answers, so the borrower's ends first, by any two clocks
//!   that run equally fast. No clock has to tell the same time as another.
//!
//! So no message makes anybody exceed anything: lost, late, repeated, out of order, or kept back for a
//! week by whoever carries them. A crash loses what was lent, until its time is over, and nothing else.
//! `docs/fleet.md` has the proof; `tests/simulation/` tries it.
//!
//! Loans between two nodes are renewed together, by one question for all of them ([`Renewal`]): so a budget is spoken of only
//! when something changes.
//!
//! Owners are many, and most of them quiet: a node forgets a budget of which nobody has anything but what is
//! at home, and begins with it again when somebody needs it ([`Memory`]).
//!
//! Nodes write to each other in [letters](Letter) of [`Note`]s, sealed with the fleet's [key](Key) and
//! with what all nodes must have alike ([`Seal`]): whoever has another key, other names or other terms
//! is not heard.
//!
//! Besides budgets, nodes share [bans]: what one makes or lifts, all do; [known sources](sources): what one has
//! proven, all believe; and [policies](pushes), which one pushes to all.
//!
//! What must not exist here: a clock, a network, a file, a limit's name. Time is an argument, in
//! nanoseconds of a clock of the node's own that never goes back.

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
