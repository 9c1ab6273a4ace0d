//! Completed handshakes, and the tokens that they take from the buckets of limits on handshakes.
//!
//! A forged packet completes no handshake. So a packet that may open a connection only checks that the bucket
//! has a token, and the completed handshake takes it, even from an empty bucket: handshakes in flight may
//! make a debt.

use super::{Ends, count_id::EVERY_INTERFACE, opening::counted_class};
use crate::{
    bucket::{Decide, Ending, Transition},
    key::{BucketKey, KeyFields},
    limit::MAX_HANDSHAKE_LIMITS,
    packet::NameMatch,
    policy::{Tables, matching, parameters_of},
    strategy::Spend,
};

/// The token that a handshake takes from one GCRA bucket.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeCharge {
    /// The bucket.
    pub key: BucketKey,
    /// The number of its states' unit.
    pub unit: u32,
    /// The token.
    pub token: HandshakeToken,
}

/// A token that is taken even from an empty bucket.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct HandshakeToken {
    /// The time of taking it, in nanoseconds.
    pub now_ns: u64,
    /// The same time in ticks.
    now: u64,
    /// Its cost, in ticks.
    increment: u64,
}

/// Calls `charge` with the index of each limit on handshakes.
#[inline(always)]
pub fn each_limit<T: Tables>(tables: &T, mut charge: impl FnMut(u32)) {
    let mut rest = tables.features().handshakes;
    for _ in 0..MAX_HANDSHAKE_LIMITS {
        if rest == 0 {
            break;
        }
        charge(rest.trailing_zeros());
        rest &= rest.wrapping_sub(1);
    }
}

/// Returns the charge for a handshake, completed at the time `now_ns`, at the limit on handshakes at an index,
/// or `None` if the limit does not count it.
#[inline(always)]
pub fn handshake_charge<T: Tables>(
    tables: &T,
    ends: &Ends,
    limit_index: u32,
    now_ns: u64,
) -> Option<HandshakeCharge> {
    let facts = ends.facts();
    let class = counted_class(tables, &facts)?;
    if matching(tables, &facts, class) >> (limit_index & 63) & 1 == 0 {
        return None;
    }
    let limit = tables.limit(limit_index)?;
    let parameters = parameters_of(tables, class, limit_index)?;
    let family = (tables.opaque(facts.source.family.index() as u64) & 1) as usize;
    let key_fields = KeyFields {
        facts: &facts,
        subscriber: &class.subscriber,
        // No connection has a question.
        name_match: &NameMatch::NOTHING,
        interface: &EVERY_INTERFACE,
    };
    let gcra = &parameters.gcra;
    Some(HandshakeCharge {
        key: limit.bucket(&key_fields, family),
        unit: parameters.unit,
        token: HandshakeToken {
            now_ns,
            now: gcra.ticks(now_ns),
            increment: gcra.emission_interval,
        },
    })
}

impl<Location> Decide<Location> for HandshakeToken {
    #[inline(always)]
    fn decide(&mut self, _location: &Location, state: u64) -> Transition {
        let spend = Spend::unbounded(self.now, self.increment);
        Transition {
            state: spend.gcra().decide(state).state,
            ending: Ending::Stored,
        }
    }
}
