//! Computes a policy's demands on a frame without its compiled tables.

use limiter_common::{
    address::Address,
    key::BucketKey,
    limit::{Cost, IdFormat},
    packet::{self, Facts},
    strategy::Parameters,
};
use limiter_native::BytesFrame;
use limiter_policy::policy::{Limit, Mode, Policy};

use super::{
    model::{self, PacketNames},
    question::Question,
    server_name::ConnectionName,
};

/// One limit's demand on a packet.
#[derive(Debug)]
pub(super) struct LimitCharge {
    pub(super) limit_index: u32,
    pub(super) observes: bool,
    pub(super) key: BucketKey,
    pub(super) cost: u64,
    pub(super) parameters: Parameters,
}

impl LimitCharge {
    pub(super) fn is_larger_than_burst(&self) -> bool {
        self.cost > self.parameters.when_full()
    }
}

/// Returns the demands of all limits that count the frame, by limit index; empty if it is no
/// packet.
pub(super) fn wanted(policy: &Policy, frame: &[u8]) -> Vec<LimitCharge> {
    let mut facts = Facts::NONE;
    if packet::parse(&BytesFrame(frame), &mut facts).is_err() {
        return Vec::new();
    }
    let question = Question::of(frame);
    (0..)
        .zip(&policy.limits)
        .filter_map(|(limit_index, limit)| {
            let question = question.as_ref();
            of_limit(policy, limit_index, limit, &facts, question)
        })
        .collect()
}

fn of_limit(
    policy: &Policy,
    limit_index: u32,
    limit: &Limit,
    facts: &Facts,
    question: Option<&Question>,
) -> Option<LimitCharge> {
    let wish = PacketNames {
        question,
        server_name: &ConnectionName::Nothing,
    };
    let rate = model::rate(policy, limit, facts, wish)?;
    let key = match limit.id_format {
        IdFormat::RegId => {
            BucketKey::of_subscriber(limit.id, policy.subscriber_of(facts.source.into())?)
        }
        IdFormat::Destination => {
            let destination = Address {
                family: facts.source.family,
                high: facts.destination_high,
                low: facts.destination_low,
            };
            BucketKey::of_destination(limit.id, destination)
        }
        IdFormat::Total => BucketKey::of_interface(limit.id, 0),
        format => {
            let prefix_length = format.prefix_length(facts.source.family)?;
            BucketKey::of_source(limit.id, facts.source, prefix_length)
        }
    };
    Some(LimitCharge {
        limit_index,
        observes: limit.mode == Mode::Observe,
        key,
        cost: match limit.cost {
            Cost::Packets
            | Cost::NewConnections
            | Cost::Connections
            | Cost::Handshakes
            | Cost::NewNames => 1,
            Cost::Bytes => facts.length.into(),
        },
        parameters: Parameters::new(limit.strategy, rate.burst, rate.count, rate.period_ns)?,
    })
}
