//! Policies that a node pushes to all. `limiter-fleet` has the states of the pushing node and of the
//! others; this module acts on them.
//!
//! Each node reads the current order once a second (`exchange.rs`), and makes the daemon check, take, keep
//! or take back the file (`part.rs`). It uses the mechanism of `limiter run --confirm`, which reverts by
//! itself unless the fleet confirms in time. The pushing node sends the orders (`lead.rs`), while its
//! operator's command queries the state (`requests.rs`). An operator on another node may also keep the policy
//! or take it back: that node informs the pushing node (`other.rs`).

mod exchange;
mod lead;
mod memory;
mod other;
mod part;
mod requests;

pub(in crate::daemon) use self::requests::PushingError;
pub(super) use self::{lead::Lead, other::OtherPush, part::Pushes};
