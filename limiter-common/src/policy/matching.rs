//! Finds the limits that count a packet.

use super::{Child, Class, Dimension, Features, Masks, Tables, lookup::search_rarely};
use crate::{
    address::Family,
    packet::{Facts, Transport},
};

/// Returns the limits that count a packet from a source of `class`, as bits by limit index.
#[inline(always)]
pub fn matching<T: Tables>(tables: &T, facts: &Facts, class: &Class) -> u64 {
    let features = tables.features();
    let mut limits = class.applies;
    let destinations = features.start(match facts.source.family {
        Family::V4 => Dimension::DestinationV4,
        Family::V6 => Dimension::DestinationV6,
    });
    limits &= by_value(
        tables,
        destinations,
        facts.destination_high,
        facts.destination_low,
    );
    limits &= by_transport(tables, features, facts);
    if features.otherwise[0].limits == 0 {
        limits
    } else {
        tables.without_otherwise(limits)
    }
}

#[inline(always)]
fn by_transport<T: Tables>(tables: &T, features: &Features, facts: &Facts) -> u64 {
    if matches!(facts.transport, Transport::UnknownProtocol) {
        return features.of_any_protocol;
    }
    let mut limits = u64::MAX;
    if features.matches_protocols == 1 {
        limits = set_of_number(tables, Masks::PROTOCOLS + u32::from(facts.protocol));
    }
    if matches!(facts.transport, Transport::Unknown) {
        return limits & features.later_fragments;
    }
    limits &= match facts.transport {
        Transport::Tcp if features.matches_tcp_flags == 1 => set_of_kind(tables, facts),
        Transport::Tcp => u64::MAX,
        Transport::Other if features.matches_icmp_types == 1 => {
            features.without_tcp & features.without_ports & set_of_kind(tables, facts)
        }
        // Limits that do not name its types would drop it once a flood of pings has emptied their
        // buckets.
        Transport::Other if facts.kind.is_neighbour_discovery() => 0,
        Transport::Other => features.without_tcp & features.without_ports,
        _ => features.without_tcp,
    };
    if matches!(facts.transport, Transport::Other) {
        return limits;
    }
    let (sources, destinations) = (
        features.start(Dimension::SourcePort),
        features.start(Dimension::DestinationPort),
    );
    limits &= by_value(tables, sources, 0, facts.source_port.into());
    limits & by_value(tables, destinations, 0, facts.destination_port.into())
}

#[inline(always)]
fn set_of_kind<T: Tables>(tables: &T, facts: &Facts) -> u64 {
    set_of_number(tables, Masks::KINDS + u32::from(facts.kind.number()))
}

#[inline(always)]
fn by_value<T: Tables>(tables: &T, start: Child, high: u64, low: u64) -> u64 {
    if start.is_unused() {
        u64::MAX
    } else {
        set_of_number(tables, search_rarely(tables, start, high, low))
    }
}

#[inline(always)]
pub(crate) fn set_of_value<T: Tables>(tables: &T, dimension: Dimension, value: u64) -> u64 {
    by_value(tables, tables.features().start(dimension), 0, value)
}

/// Returns a set of limits by its index; empty if there is none.
#[inline(always)]
pub(crate) fn set_of_number<T: Tables>(tables: &T, index: u32) -> u64 {
    match tables.mask(index) {
        Some(limits) => *limits,
        None => 0,
    }
}
