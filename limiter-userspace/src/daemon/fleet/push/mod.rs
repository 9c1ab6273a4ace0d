//! Policies that a node pushes to all. `limiter-fleet` has the states of the pushing node and of the
//! others; this module acts on them.
//!
//! Each node reads the current order once a second (`exchange.rs`), and makes the daemon check, take, keep
//! or take back the file (`part.rs`). It uses the mechanism of `limiter run --confirm`, which reverts by
//! itself unless the fleet confirms in time. The pushing node sends the orders (`lead.rs`), while its
//! operator's command queries the state (`asked.rs`). An operator on another node may also keep the policy
//! or take it back: that node tells the pushing node (`heard.rs`).

mod asked;
mod exchange;
mod heard;
mod lead;
mod memory;
mod part;

pub(in crate::daemon) use self::asked::PushingError;
pub(super) use self::{heard::OtherPush, lead::Lead, part::Pushes};
