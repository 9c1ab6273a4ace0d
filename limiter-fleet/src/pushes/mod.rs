//! A policy that one node pushes to the fleet: first to a few nodes, the *canaries*, then to the others.
//! Unless an operator keeps it, all nodes go back by themselves.
//!
//! The pushing node ([`Leader`]) sends the current order ([`Order`]) each second. Each other node
//! ([`Follower`]) follows it if it may, and reports the result ([`PushReply`]). The fleet's key authenticates
//! both. The file travels beside the order, which has its SHA-256.
//!
//! A node holds a pushed policy only while it receives orders of the pushing node: it goes back `hold_ms`
//! after the last order, even if the pushing node is gone. So lost, late or withheld messages never leave
//! an unconfirmed policy in force.
//!
//! A node believes an order that is fresh ([`MOST_OLD_MS`]), has a higher number than all known orders of
//! its push, and belongs to no older push than the newest known one. So repeated orders have no effect.
//!
//! An operator may also keep the policy, or go back, from another node ([`Wish`]). That node adds the wish
//! to its replies, which name the push and are numbered as well. The pushing node treats it like a local
//! command.

mod authenticator;
mod follower;
mod leader;
mod order;
mod reply;
#[cfg(test)]
mod tests;

pub use self::{
    authenticator::PushAuthenticator,
    follower::{Act, Follower},
    leader::{Canaries, Leader, Outcome, Plan, PlanError, Seen, Stage},
    order::{
        HOLD_MS, MOST_CANARIES, MOST_FILE, MOST_OLD_MS, Order, PushId, Step, Takers, WrongOrder,
        file_digest,
    },
    reply::{MOST_TEXT, PushReply, PushState, Wish, bounded},
};
