//! The limits of answers, which follow the policy's own: the datapath charges answers to them, and
//! no packet.

use limiter_common::{
    address::Family,
    limit::{ANSWER_LIMITS, Cost, IPV4_RANGE, IPV6_RANGE, IdFormat},
    policy::LimitEntry,
    standing::Standing,
    strategy::Parameters,
};

use super::{
    error::CompileError,
    limit_sets::{bit, set_of},
    number::index,
    rates::Rates,
};
use crate::policy::{Limit, Policy};

/// The limits of answers.
#[derive(Default)]
pub(super) struct AnswerLimits {
    /// Their entries, in the order of [`ANSWER_LIMITS`]; none if nothing is answered.
    pub(super) entries: Vec<LimitEntry>,
    /// Their parameters.
    pub(super) parameters: Vec<Parameters>,
    /// Those of answers to each family.
    pub(super) of_families: [u64; 2],
}

impl AnswerLimits {
    pub(super) fn new(policy: &Policy, rates: &mut Rates) -> Result<Self, CompileError> {
        let Some(answers) = policy.answers_in_use() else {
            return Ok(Self::default());
        };
        let owners = [
            IdFormat::Ipv4RangeCidr {
                prefix_length: IPV4_RANGE,
            },
            IdFormat::Ipv6RangeCidr {
                prefix_length: IPV6_RANGE,
            },
            IdFormat::Total,
        ];
        let entries = ANSWER_LIMITS.into_iter().zip(owners);
        let entries = entries.map(|(id, owner)| LimitEntry::new(id, owner, Cost::Packets));
        let per_prefix = rates.of_answers(answers.per_prefix)?;
        let total = rates.of_answers(answers.total)?;
        let first = index(policy.limits.len());
        let numbered = (first..).zip(owners);
        let of_family = |family| {
            let of_family = numbered.clone().filter(|(_, owner)| owner.is_for(family));
            of_family.fold(0, |set, (limit_index, _)| set | bit(limit_index))
        };
        Ok(Self {
            entries: entries.collect(),
            parameters: vec![per_prefix, per_prefix, total],
            of_families: [Family::V4, Family::V6].map(of_family),
        })
    }
}

/// Returns the entry of a limit with its answers.
pub(super) fn with_answers(entry: LimitEntry, limit: &Limit) -> LimitEntry {
    match limit.answers() {
        Some(deny) => {
            let of_standings = Standing::ALL.map(|standing| deny.to(standing));
            entry.with_answers(of_standings, deny.other, deny.slip)
        }
        None => entry,
    }
}

/// Returns the limits whose answers depend on the standing of a source.
pub(super) fn by_standing(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| {
        let answers = limit.answers();
        answers.is_some_and(|deny| deny.depends_on_standing())
    })
}
