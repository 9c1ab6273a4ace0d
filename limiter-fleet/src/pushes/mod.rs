//! A policy that one node pushes to all: first to a few, the *canaries*, then to the others, and back by
//! itself unless somebody keeps it.
//!
//! The node that pushes ([`Leader`]) says each second what is to be done ([`Order`]); each node
//! ([`Follower`]) does it if it may, and says what came of it ([`PushAnswer`]). Both are sealed with the
//! fleet's key. The file itself travels beside the order, which has its SHA-256.
//!
//! A node holds to a pushed policy only while it hears the pusher: within the order's `hold_ms` after the
//! last order it goes back, whoever is gone. So nothing that is lost, late or kept back leaves a policy in
//! force that nobody confirmed.
//!
//! An order is believed if it is fresh ([`MOST_OLD_MS`]), has a higher number than all that were heard of
//! its push, and is of no older push than the newest that this node knows. So what is repeated changes
//! nothing.
//!
//! An operator may also say on another node that all are to keep it, or to go back ([`Wish`]). That node says so with
//! its answers, which name the push and are numbered, too; and the node that pushes takes it as if it were said there.

mod answer;
mod follower;
mod leader;
mod order;
mod seal;
#[cfg(test)]
mod tests;

pub use self::{
    answer::{MOST_TEXT, PushAnswer, Said, Wish, bounded},
    follower::{Act, Follower},
    leader::{Canaries, Leader, Outcome, Plan, PlanError, Seen, Stage},
    order::{
        HOLD_MS, MOST_CANARIES, MOST_FILE, MOST_OLD_MS, Order, PushId, Step, Takers, WrongOrder,
        file_digest,
    },
    seal::PushSeal,
};
