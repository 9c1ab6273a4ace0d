//! Policies that a node rolls out to all. `limiter-fleet` has the states of the leading node and of the
//! others; this module acts on them.
//!
//! Each node reads the current command once a second (`exchange.rs`), and makes the daemon check, take, keep
//! or take back the file (`part.rs`). It uses the mechanism of `limiter run --confirm`, which reverts by
//! itself unless the fleet confirms in time. The leading node sends the commands (`lead.rs`), while
//! `limiter fleet push` queries the state (`requests.rs`). An operator on another node may also keep the
//! policy or take it back: that node informs the leading node (`other.rs`).

mod exchange;
mod lead;
mod memory;
mod other;
mod part;
mod requests;

pub(in crate::daemon) use self::requests::RolloutError;
pub(super) use self::{lead::Lead, other::OtherRollout, part::Rollouts};
