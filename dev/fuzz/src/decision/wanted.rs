//! What a policy wants of a frame, found without its tables.

use limiter_common::{
    limit::{Cost, IdFormat},
    owner::BucketKey,
    packet::{self, Facts},
    strategy::Budget,
};
use limiter_datapath::native::BytesFrame;
use limiter_policy::policy::{Limit, Mode, Policy};

use super::model;

/// What one limit wants of a packet.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) slot: u32,
    pub(super) observes: bool,
    pub(super) key: BucketKey,
    pub(super) cost: u64,
    pub(super) budget: Budget,
}

impl Wanted {
    pub(super) fn is_larger_than_burst(&self) -> bool {
        self.cost > self.budget.when_full()
    }
}

/// Of every limit that counts it, in the order of the slots; of none, if it is no packet.
pub(super) fn wanted(policy: &Policy, frame: &[u8]) -> Vec<Wanted> {
    let mut facts = Facts::NONE;
    if packet::parse(&BytesFrame(frame), &mut facts).is_err() {
        return Vec::new();
    }
    (0..)
        .zip(&policy.limits)
        .filter_map(|(slot, limit)| of_limit(policy, slot, limit, &facts))
        .collect()
}

fn of_limit(policy: &Policy, slot: u32, limit: &Limit, facts: &Facts) -> Option<Wanted> {
    let rate = model::rate(policy, limit, facts)?;
    let key = match limit.id_format {
        IdFormat::RegId => {
            BucketKey::of_subscriber(limit.id, policy.subscriber_of(facts.source.into())?)
        }
        IdFormat::Total => BucketKey::of_interface(limit.id, 0),
        format => {
            let prefix_length = format.prefix_length(facts.source.family)?;
            BucketKey::of_source(limit.id, facts.source, prefix_length)
        }
    };
    Some(Wanted {
        slot,
        observes: limit.mode == Mode::Observe,
        key,
        cost: match limit.cost {
            Cost::Packets | Cost::NewConnections => 1,
            Cost::Bytes => facts.length,
        },
        budget: Budget::new(limit.strategy, rate.burst, rate.count, rate.period_ns)?,
    })
}
