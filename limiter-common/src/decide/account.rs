//! The bucket and the cost of a packet by one of its limits.

use crate::{
    judged::Packet,
    limit::LimitId,
    owner::BucketKey,
    policy::{Tables, parameters_of},
    strategy::Parameters,
};

/// The bucket and the cost of a packet by one limit that counts it.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The bucket.
    pub key: BucketKey,
    /// The bucket's parameters; at the floor, if the limit's rate is automatic.
    pub parameters: &'a Parameters,
    /// The emission interval in force, in ticks, if the limit's rate is automatic; else 0. Not an
    /// option: the compiler would spill what it does not hold, which the verifier refuses.
    pub interval: u64,
    /// The tokens that the packet costs.
    pub cost: u64,
}

#[cfg(not(target_arch = "bpf"))]
impl Account<'_> {
    /// Returns the parameters in force.
    #[must_use]
    pub fn in_force(&self) -> Parameters {
        match self.interval {
            0 => *self.parameters,
            interval => self.parameters.at_interval(interval),
        }
    }
}

/// Returns the account of a packet with the limit with that index, which counts it.
#[inline(always)]
pub fn account<'a, T: Tables>(
    tables: &'a T,
    packet: &Packet,
    limit_index: u32,
) -> Option<Account<'a>> {
    let limit = tables.limit(limit_index)?;
    // If the verifier knew the family, it would walk the rest once for each.
    let family = (tables.opaque(packet.facts.source.family.index() as u64) & 1) as usize;
    let parameters = parameters_of(tables, &packet.class, limit_index)?;
    let is_automatic = tables.shape().is_automatic(limit_index);
    Some(Account {
        key: limit.bucket(&packet.owner_fields(&tables.shape().interface), family),
        parameters,
        interval: if is_automatic {
            let rate = tables.current_rate(LimitId(limit.id));
            limit.interval_in_force(rate, parameters, packet.now)
        } else {
            0
        },
        cost: limit.cost_of(&packet.facts),
    })
}
