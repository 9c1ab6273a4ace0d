//! The bucket and the cost of a packet by one of its limits.

use crate::{
    classified_packet::ClassifiedPacket, key::BucketKey, policy::Tables, strategy::Parameters,
};

/// The bucket and the cost of a packet by one limit that counts it.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// The bucket.
    pub key: BucketKey,
    /// The bucket's parameters.
    pub parameters: &'a Parameters,
    /// The tokens that the packet costs.
    pub cost: u64,
}

/// Returns the account of a packet at the limit at an index, which counts it, or `None` if there is
/// no such limit.
#[inline(always)]
pub fn account<'a, T: Tables>(
    tables: &'a T,
    packet: &ClassifiedPacket,
    limit_index: u32,
) -> Option<Account<'a>> {
    let limit = tables.limit(limit_index)?;
    // If the verifier knew the family, it would walk the rest once for each.
    let family = (tables.opaque(packet.facts.source.family.index() as u64) & 1) as usize;
    let parameters = packet.parameters(tables, limit_index)?;
    Some(Account {
        key: limit.bucket(&packet.key_fields(), family),
        parameters,
        cost: limit.cost_of(&packet.facts),
    })
}
