//! Shared budgets: a node leases its share of each from the store.
//!
//! A packet cannot wait for a network, so each node holds a [`Share`] of a budget, of its burst and of its rate alike.
//! Every node has a [minimum share](minimum_share) that it never lends. The rest of each budget is leased by a script
//! that the store runs ([`ARBITER`]): max-min fair by demand, together never more than the rest.
//!
//! * [`Leases`]: a node's session with the store. One call a second renews all leases; it names only the keys with a
//!   change. A lease ends three seconds after the node has sent the last call that was answered, by the node's clock;
//!   the store counts it for longer.
//! * [`Lease`]: a node's lease of one key's budget. The node uses less before it says so, and more only by a response.
//! * [`DemandMeter`]: the share that a key's packets need.
//!
//! `docs/fleet-bound.md` has the proof that all nodes together stay within the budget; `tests/simulation/` runs the
//! script among faults.

mod demand;
mod key_lease;
mod leases;
mod reply;

use sha2::{Digest as _, Sha256};

pub use self::{
    demand::{BUDGET_NS, DemandMeter},
    key_lease::{Change, Lease, Need},
    leases::{ActiveKey, Call, CallId, Effect, LEASE_NS, Leases},
    reply::{Grant, Reply, ReplyItem},
};
use crate::Share;

/// The script that divides budgets, in Lua 5.1 as Redis runs it. It describes its arguments and its reply.
pub const ARBITER: &str = include_str!("arbiter.lua");

/// All minimum shares together: a twentieth of the whole.
const MINIMUMS: Share = Share::billionths(50_000_000);

/// The part of a budget that is leased.
pub const POOL: Share = Share::WHOLE.without(MINIMUMS);

/// The share of each of at most `nodes` nodes that it never lends.
#[must_use]
pub const fn minimum_share(nodes: u32) -> Share {
    MINIMUMS.divided(nodes as u64)
}

/// A key's name in the store: its limit's name, its kind and its id, all in network byte order.
pub type KeyName = [u8; 36];

/// The name of a limit in the store, the same on all nodes: a digest of its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitName(pub [u8; 16]);

impl LimitName {
    /// Returns the name of a limit from its description: SHA-256, cut to half.
    #[must_use]
    pub fn of(description: &[u8]) -> Self {
        let mut name = [0; 16];
        for (to, byte) in name.iter_mut().zip(Sha256::digest(description)) {
            *to = byte;
        }
        Self(name)
    }
}
