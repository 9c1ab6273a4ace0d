//! What is known of sources besides their budgets: who is banned, and whom a sieve holds to be
//! busy.

use crate::{
    address::Address,
    charge::Packet,
    decide::{Clock, Verdict},
    policy::Tables,
};

/// Where reputations are kept.
pub trait Reputation {
    /// Whether a ban of the source, or of a range that it is in, holds now.
    fn is_banned<C: Clock>(&self, source: &Address, clock: &C) -> bool;

    /// Has the sieves that are under pressure score a packet; returns whether one of them drops
    /// it, which the verdict then says. Not called under a policy that uses no sieve.
    fn sift<T: Tables>(&self, tables: &T, packet: &Packet, verdict: &mut Verdict) -> bool;
}

/// Nothing is known of anybody.
impl Reputation for () {
    #[inline(always)]
    fn is_banned<C: Clock>(&self, _source: &Address, _clock: &C) -> bool {
        false
    }

    #[inline(always)]
    fn sift<T: Tables>(&self, _tables: &T, _packet: &Packet, _verdict: &mut Verdict) -> bool {
        false
    }
}
