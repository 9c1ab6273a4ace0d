//! The limits of answers. They follow the policy's own limits, and the datapath charges answers to them, not
//! packets.
//!
//! After them come the limits of connections by SYN cookies, at the same rates. A client can replay one
//! cookie, and the network stack makes a connection each time, so these limits count every segment with a
//! cookie. They have their own buckets: a client without a cookie cannot spend from them.

use limiter_common::{
    address::Family,
    limit::{
        ANSWER_LIMITS, BuiltIn, COOKIE_LIMITS, Cost, IPV4_RANGE, IPV6_RANGE, IdFormat, LimitId,
    },
    packet::{FLAG_ACK, FLAG_RST, FLAG_SYN, PROTOCOL_TCP, TcpState},
    policy::LimitEntry,
    standing::Standing,
    strategy::Parameters,
};

use super::{
    bounds::{CompileError, index},
    limit_sets::{bit, set_of},
    rates::Rates,
};
use crate::policy::{Limit, Match, Mode, Policy, TcpFlags};

/// The limits of answers and of connections by SYN cookies.
#[derive(Default)]
pub(super) struct AnswerLimits {
    /// Their entries, in the order of their ids; empty if the policy sends no answers.
    pub(super) entries: Vec<LimitEntry>,
    /// Their parameters.
    pub(super) parameters: Vec<Parameters>,
    /// The limits of answers, as a set for each family.
    pub(super) of_families: [u64; 2],
    /// The limits of connections by SYN cookies, as a set for each family.
    pub(super) of_cookies: [u64; 2],
}

impl AnswerLimits {
    pub(super) fn new(policy: &Policy, rates: &mut Rates) -> Result<Self, CompileError> {
        let Some(answers) = policy.answers_in_use() else {
            return Ok(Self::default());
        };
        let ids = ids(policy);
        let id_formats = id_formats().into_iter().cycle();
        let entries = ids.iter().zip(id_formats.clone());
        let entries = entries.map(|(id, id_format)| LimitEntry::new(*id, id_format, Cost::Packets));
        let per_prefix = rates.of_answers(answers.per_prefix)?;
        let total = rates.of_answers(answers.total)?;
        let parameters = [per_prefix, per_prefix, total].into_iter().cycle();
        let first = index(policy.limits.len());
        let numbered = (first..).zip(ids.iter().zip(id_formats));
        let sets = |of: [LimitId; 3]| {
            let numbered = numbered.clone().filter(move |(_, (id, _))| of.contains(id));
            [Family::V4, Family::V6].map(|family| {
                let of_family = numbered
                    .clone()
                    .filter(|(_, (_, id_format))| id_format.is_for(family));
                of_family.fold(0, |set, (limit_index, _)| set | bit(limit_index))
            })
        };
        Ok(Self {
            entries: entries.collect(),
            parameters: parameters.take(ids.len()).collect(),
            of_families: sets(ANSWER_LIMITS),
            of_cookies: sets(COOKIE_LIMITS),
        })
    }
}

/// Returns the interned ids of the limits of answers, and of connections by SYN cookies, that a policy uses.
pub(super) fn ids(policy: &Policy) -> Vec<LimitId> {
    let mut ids = Vec::new();
    if policy.answers_in_use().is_some() {
        ids.extend(ANSWER_LIMITS);
    }
    if policy.makes_syn_cookies() {
        ids.extend(COOKIE_LIMITS);
    }
    ids
}

/// Returns the policy's limits, followed by the limits of answers in the form of packet limits. Of these,
/// only the limits of connections by SYN cookies count packets.
pub(super) fn with_limits_of_answers(policy: &Policy) -> Vec<Limit> {
    let mut limits = policy.limits.clone();
    let Some(answers) = policy.answers_in_use() else {
        return limits;
    };
    let makers = policy
        .limits
        .iter()
        .filter(|limit| limit.makes_syn_cookies());
    let ports = makers.map(|limit| &limit.matching.destination_ports);
    // A limit without ports matches all ports.
    let destination_ports = if ports.clone().any(Vec::is_empty) {
        Vec::new()
    } else {
        ports.flatten().cloned().collect()
    };
    let matching = Match {
        protocols: vec![PROTOCOL_TCP],
        destination_ports,
        // The same test as in the network stack (linux: `cookie_v4_check`).
        tcp_flags: Some(TcpFlags {
            set: FLAG_ACK,
            clear: FLAG_SYN | FLAG_RST,
        }),
        tcp_states: vec![TcpState::Cookie],
        ..Match::default()
    };
    let rates = [answers.per_prefix, answers.per_prefix, answers.total];
    let id_formats_with_rates = id_formats().into_iter().zip(rates).cycle();
    let of_answers = ids(policy).into_iter().zip(id_formats_with_rates);
    limits.extend(of_answers.map(|(id, (id_format, rate))| {
        // Limits of answers count no packet, and must not widen the set of fields that the datapath reads.
        let (matching, mode) = if COOKIE_LIMITS.contains(&id) {
            (matching.clone(), Mode::Enforce)
        } else {
            (Match::default(), Mode::Off)
        };
        let built_in = BuiltIn {
            name: "answers",
            id,
            id_format,
            cost: Cost::Packets,
        };
        Limit {
            matching,
            mode,
            ..Limit::of_built_in(&built_in, Some(rate))
        }
    }));
    limits
}

/// Returns the formats of their ids, in the order of [`ANSWER_LIMITS`].
const fn id_formats() -> [IdFormat; ANSWER_LIMITS.len()] {
    [
        IdFormat::Ipv4RangeCidr {
            prefix_length: IPV4_RANGE,
        },
        IdFormat::Ipv6RangeCidr {
            prefix_length: IPV6_RANGE,
        },
        IdFormat::Total,
    ]
}

/// Returns the entry of a limit, with its answers.
pub(super) fn with_answers(entry: LimitEntry, limit: &Limit) -> LimitEntry {
    match limit.answers() {
        Some(deny) => {
            let of_standings = Standing::ALL.map(|standing| deny.to(standing));
            entry.with_answers(of_standings, deny.other, deny.slip)
        }
        None => entry,
    }
}

/// Returns the limits with answers that depend on the standing of a source.
pub(super) fn by_standing(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| {
        let answers = limit.answers();
        answers.is_some_and(|deny| deny.depends_on_standing())
    })
}
