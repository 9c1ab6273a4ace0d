//! A policy that one node pushes to the fleet: first to a few nodes, the *canaries*, then to the others.
//! Unless an operator keeps it, all nodes go back by themselves.
//!
//! The pushing node ([`Leader`]) sends the current order ([`Order`]) each second. Each other node
//! ([`Follower`]) follows it if it may, and reports the result ([`PushAnswer`]). The fleet's key seals
//! both. The file travels beside the order, which has its SHA-256.
//!
//! A node holds a pushed policy only while it hears from the pushing node: it goes back `hold_ms` after the
//! last order, even if the pushing node is gone. So lost, late or withheld messages never leave an
//! unconfirmed policy in force.
//!
//! A node believes an order that is fresh ([`MOST_OLD_MS`]), has a higher number than all known orders of
//! its push, and belongs to no older push than the newest known one. So repeated orders have no effect.
//!
//! An operator may also keep the policy, or go back, from another node ([`Wish`]). That node adds the wish
//! to its answers, which name the push and are numbered as well. The pushing node treats it like a local
//! command.

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
