//! Sets of limits, with a bit for each limit index, and the entries of limits.

use limiter_common::{
    address::Family,
    limit::{Cost, IdFormat, KeyPart},
    packet::TcpState,
    policy::{FallbackLimits, LimitEntry, MOST_OTHERWISE},
    standing::{Reserves, Standing},
    strategy::Parameters,
};

use crate::policy::{Fragments, Limit, Mode, automatic::interval_of};

pub(super) fn set_of(limits: &[Limit], holds: impl Fn(&Limit) -> bool) -> u64 {
    (0..)
        .zip(limits)
        .filter(|(_, limit)| holds(limit))
        .fold(0, |set, (limit_index, _)| set | bit(limit_index))
}

pub(super) const fn bit(limit_index: u32) -> u64 {
    1 << limit_index
}

/// The limits of each kind.
#[derive(Clone, Copy)]
pub(super) struct LimitSets {
    /// Limits that are not off.
    on: u64,
    for_v4: u64,
    for_v6: u64,
    /// Limits with a default rate.
    with_default: u64,
    /// Limits, not off, with overrides by name.
    pub(super) overridden_by_name: u64,
    /// Limits with one bucket for each subscriber.
    by_subscriber: u64,
    pub(super) observing: u64,
    /// Limits that count packets other than TCP.
    pub(super) without_tcp: u64,
    /// Limits that count packets without ports.
    pub(super) without_ports: u64,
    /// Limits that count later fragments of the protocols they count.
    pub(super) later_fragments: u64,
    /// Limits that count later fragments of unknown protocol.
    pub(super) of_any_protocol: u64,
}

impl LimitSets {
    pub(super) fn new(limits: &[Limit]) -> Self {
        let set = |holds: fn(&Limit) -> bool| set_of(limits, holds);
        Self {
            on: set(|limit| limit.mode != Mode::Off),
            for_v4: set(|limit| limit.id_format.is_for(Family::V4)),
            for_v6: set(|limit| limit.id_format.is_for(Family::V6)),
            with_default: set(|limit| limit.default.is_some()),
            overridden_by_name: set(|limit| {
                let mut overrides = limit.overrides.iter();
                limit.mode != Mode::Off && overrides.any(|other| other.id.name().is_some())
            }),
            by_subscriber: set(|limit| limit.id_format.key_part() == Some(KeyPart::Subscriber)),
            observing: set(|limit| limit.mode == Mode::Observe),
            without_tcp: set(|limit| !needs_tcp(limit)),
            without_ports: set(|limit| !limit.matching.needs_ports()),
            later_fragments: set(|limit| {
                counts_later_fragments(limit, limit.matching.needs_transport())
            }),
            of_any_protocol: set(|limit| {
                let matching = &limit.matching;
                let guesses = matching.needs_transport() || !matching.protocols.is_empty();
                counts_later_fragments(limit, guesses)
            }),
        }
    }

    pub(super) const fn only_overridden(&self) -> u64 {
        self.overridden_by_name & !self.with_default
    }

    /// Returns the limits that apply to sources of a family, with or without a subscriber. A limit without a
    /// default applies only if it is in `for_these` (it overrides or blocks these sources) or has overrides
    /// by name: the class is chosen before the packet's name is known.
    pub(super) const fn applying(&self, family: Family, for_these: u64, subscriber: bool) -> u64 {
        let for_family = match family {
            Family::V4 => self.for_v4,
            Family::V6 => self.for_v6,
        };
        let owned = if subscriber {
            u64::MAX
        } else {
            !self.by_subscriber
        };
        self.on & for_family & owned & (self.with_default | self.overridden_by_name | for_these)
    }
}

/// Returns whether a limit counts later fragments that may match. With `guesses`, the fragments lack some of
/// the fields that the limit matches on.
fn counts_later_fragments(limit: &Limit, guesses: bool) -> bool {
    // Only a first fragment opens a connection, shows its connection, or has a question.
    !is_of_connections(limit)
        && limit.tcp_states().is_empty()
        && !limit.counts_by_question()
        && !limit.counts_by_server_name()
        && (!guesses || limit.matching.fragments == Fragments::Count)
}

/// Returns whether a limit counts a proper subset of TCP segments, and no other packets.
pub(super) fn needs_tcp(limit: &Limit) -> bool {
    is_of_connections(limit) || limit.matching.needs_tcp()
}

const fn is_of_connections(limit: &Limit) -> bool {
    matches!(
        limit.cost,
        Cost::NewConnections | Cost::Connections | Cost::Handshakes
    )
}

pub(super) fn automatic(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| limit.ceiling.is_some())
}

pub(super) fn entry_with_ceiling(limit: &Limit) -> LimitEntry {
    let entry = LimitEntry::of_names(limit.id, limit.id_format, limit.name_kind(), limit.cost);
    let of_ceiling = limit.ceiling.map(interval_of);
    // An interval is at most a second.
    match of_ceiling.and_then(|interval| u32::try_from(interval).ok()) {
        Some(interval) => entry.with_interval_of_ceiling(interval),
        None => entry,
    }
}

pub(super) fn shared(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| limit.fleet_nodes.is_some())
}

/// Returns a limit's entry. A shared limit's entry gets this node's minimum share.
pub(super) fn with_minimum_share(entry: LimitEntry, limit: &Limit) -> LimitEntry {
    let Some(minimum_share) = limit.minimum_share() else {
        return entry;
    };
    let entry = entry.with_minimum_share(minimum_share);
    if limit.id_format == IdFormat::Total {
        entry.of_host()
    } else {
        entry
    }
}

/// Returns the kinds with such limits.
pub(super) fn fallback_limits(limits: &[Limit]) -> [FallbackLimits; MOST_OTHERWISE] {
    let mut kinds = [FallbackLimits::NONE; MOST_OTHERWISE];
    let mut known = 0;
    let mut free = kinds.iter_mut();
    for limit in limits {
        if !limit.matching.otherwise || limit.mode == Mode::Off {
            continue;
        }
        let alike = set_of(limits, |other| {
            other.matching.otherwise && other.mode == limit.mode && other.is_of_kind(limit)
        });
        if alike & !known != 0
            && let Some(kind) = free.next()
        {
            known |= alike;
            let others = set_of(limits, |other| {
                // An observing limit must not change an enforcing one.
                let has_effect = other.mode == Mode::Enforce || other.mode == limit.mode;
                // Between limits by server name, the look-up of the name decides, later.
                let is_by_name = limit.counts_by_server_name() && other.counts_by_server_name();
                let is_other = !other.matching.otherwise && !is_by_name;
                is_other && has_effect && other.is_of_kind(limit)
            });
            *kind = FallbackLimits {
                limits: alike,
                others,
            };
        }
    }
    kinds
}

/// Returns the limits that count segments of connections in each state. Limits without states count any
/// packet.
pub(super) fn of_tcp_states(limits: &[Limit]) -> [u64; TcpState::COUNT] {
    TcpState::ALL.map(|state| {
        let others = |limit: &Limit| {
            let counted = limit.tcp_states();
            !counted.is_empty() && !counted.iter().any(|one| state.is_counted_by(*one))
        };
        !set_of(limits, others)
    })
}

/// Returns the limits that reserve a part of their buckets.
pub(super) fn reserving(limits: &[Limit]) -> u64 {
    set_of(limits, Limit::reserves) & !reserving_connections(limits)
}

/// Returns the limits on connections that reserve some of them.
pub(super) fn reserving_connections(limits: &[Limit]) -> u64 {
    set_of(limits, |limit| {
        limit.reserves() && limit.cost == Cost::Connections
    })
}

/// Returns the limits that count packets of sources of each standing.
pub(super) fn of_standings(limits: &[Limit]) -> [u64; Standing::COUNT] {
    Standing::ALL.map(|standing| {
        let others = |limit: &Limit| {
            let counted = &limit.matching.standing;
            !counted.is_empty() && !counted.contains(&standing)
        };
        !set_of(limits, others)
    })
}

/// Returns the reserves for each of `rated`, parameters with the index of their limit; empty if no limit
/// reserves.
pub(super) fn reserves(limits: &[Limit], rated: &[(u32, Parameters)]) -> Vec<Reserves> {
    if !limits.iter().any(Limit::reserves) {
        return Vec::new();
    }
    let all = rated.iter().map(|(limit_index, parameters)| {
        let limit = limits.get(*limit_index as usize);
        let reserve = limit.filter(|limit| limit.reserves())?.reserve?;
        Some(reserve.compiled(&parameters.gcra))
    });
    all.map(|reserves| reserves.unwrap_or(Reserves::NONE))
        .collect()
}
