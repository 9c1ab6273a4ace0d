//! Sets of limits, with a bit for each limit index.

use limiter_common::{
    address::Family,
    limit::{Cost, KeyPart},
};

use crate::policy::{Fragments, Limit, Mode};

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
