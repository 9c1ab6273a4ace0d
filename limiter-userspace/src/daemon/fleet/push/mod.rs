//! Policies that a node pushes to all. `limiter-fleet` has the states of the node that pushes, and of those
//! that hear it; here is what each does.
//!
//! Each node reads the order in force once a second (`exchange.rs`), and has the daemon check, take, keep or
//! take back what is pushed (`part.rs`): by the same mechanism as `limiter run --confirm`, which reverts by
//! itself what the fleet does not confirm in time. The node where a push began gives the orders (`lead.rs`),
//! while its operator's command asks how far it is (`asked.rs`). On the others an operator may want it kept or taken
//! back (`heard.rs`), which they tell that node.

mod asked;
mod exchange;
mod heard;
mod lead;
mod memory;
mod part;

pub(in crate::daemon) use self::asked::PushingError;
pub(super) use self::{heard::OtherPush, lead::Lead, part::Pushes};
