//! A *rollout* brings a policy from one node to the fleet: first to a few nodes, the *canaries*, then to the others.
//! Unless an operator keeps it, all nodes go back by themselves.
//!
//! The leading node ([`Leader`]) sends the current command ([`Command`]) each second. Each other node
//! ([`Follower`]) follows it if it may, and reports the result ([`Reply`]). The fleet's key authenticates
//! both. The file travels beside the command, which has its SHA-256.
//!
//! A node holds an unconfirmed policy only while it receives commands of the leading node: it goes back `hold_ms`
//! after the last command, even if the leading node is gone. So lost, late or withheld messages never leave
//! one in force.
//!
//! A node believes a command that is fresh ([`MOST_OLD_MS`]), has a higher number than all known commands of
//! its rollout, and belongs to no older rollout than the newest known one. So repeated commands have no effect.
//!
//! An operator may also keep the policy, or go back, from another node ([`Wish`]). That node adds the wish
//! to its replies, which name the rollout and are numbered as well. The leading node treats it like a local
//! command.

mod command;
mod follower;
mod leader;
mod reply;
#[cfg(test)]
mod tests;

pub use self::{
    command::{
        Command, CommandError, HOLD_MS, MOST_CANARIES, MOST_FILE, MOST_OLD_MS, Recipients,
        RolloutId, Step, file_digest,
    },
    follower::{Act, Follower},
    leader::{Leader, Plan, PlanError, Stage, Target},
    reply::{MOST_TEXT, NodeState, Reply, Wish, bounded},
};
