//! A limit whose budgets the fleet divides.

use limiter_common::{
    address::Family,
    key::BucketKey,
    limit::{Cost, IdFormat},
};
use limiter_fleet::lease::{KeyName, LimitName};
use limiter_policy::policy::{Limit, Mode, Rate};

/// About the size of a packet in heavy traffic.
const BYTES_OF_A_PACKET: u64 = 500;

/// A shared limit.
pub(super) struct SharedLimit {
    pub(super) limit: Limit,
    pub(super) rate: Rate,
    pub(super) name: LimitName,
    /// The most nodes.
    pub(super) nodes: u32,
}

impl SharedLimit {
    /// Returns the limit if it is shared.
    pub(super) fn of(limit: &Limit) -> Option<Self> {
        let nodes = limit.fleet_nodes.filter(|_| limit.mode != Mode::Off)?;
        Some(Self {
            rate: limit.default?,
            name: LimitName::of(&terms(limit)),
            limit: limit.clone(),
            nodes,
        })
    }

    /// Returns the name of a bucket's key.
    pub(super) fn name_of(&self, key: &BucketKey) -> KeyName {
        let (kind, [high, low]) = key.key_words();
        let mut name = [0; 36];
        name[..16].copy_from_slice(&self.name.0);
        // A kind fits 32 bits.
        name[16..20].copy_from_slice(&kind.to_be_bytes()[4..]);
        name[20..28].copy_from_slice(&high.to_be_bytes());
        name[28..].copy_from_slice(&low.to_be_bytes());
        name
    }

    /// Returns the approximate demand of a packet, in tokens.
    pub(super) const fn tokens_of_a_packet(&self) -> u64 {
        if matches!(self.limit.cost, Cost::Bytes) {
            BYTES_OF_A_PACKET
        } else {
            1
        }
    }

    /// Returns the only key of the limit, which is always active; `None`: the limit has many.
    pub(super) fn only_key(&self) -> Option<BucketKey> {
        (self.limit.id_format == IdFormat::Total).then(|| BucketKey::of_host(self.limit.id))
    }
}

/// Returns the terms that make a budget: all nodes with these share it. A rate is each node's own, so that leases
/// outlast its change: a share is a part of it.
fn terms(limit: &Limit) -> Vec<u8> {
    let lengths = [Family::V4, Family::V6].map(|family| limit.prefix_length(family));
    let terms = (
        &limit.name,
        limit.id_format.name(),
        limit.per_name,
        limit.cost.name(),
        lengths,
    );
    serde_json::to_vec(&terms).expect("memory takes all terms")
}
