//! Which limits count a packet.

use super::{Dimension, Masks, Shape, Span, Tables};
use crate::{
    address::Family,
    charge::Packet,
    packet::{Facts, Transport},
};

/// The limits that count a packet, as bits by slot.
#[inline(always)]
pub fn matching<T: Tables>(tables: &T, packet: &Packet) -> u64 {
    let shape = tables.shape();
    let facts = &packet.facts;
    let mut limits = packet.class.applies;
    if shape.matches_protocols == 1 {
        limits &= mask(tables, Masks::PROTOCOLS + u32::from(facts.protocol));
    }
    let destinations = shape.span(match facts.source.family {
        Family::V4 => Dimension::DestinationV4,
        Family::V6 => Dimension::DestinationV6,
    });
    if !destinations.is_empty() {
        limits &= tables.search(destinations, facts.destination_high, facts.destination_low);
    }
    limits & by_transport(tables, shape, facts)
}

/// The limits that the transport header leaves.
#[inline(always)]
fn by_transport<T: Tables>(tables: &T, shape: &Shape, facts: &Facts) -> u64 {
    if matches!(facts.transport, Transport::Unknown) {
        return shape.later_fragments;
    }
    let mut limits = match facts.transport {
        Transport::Tcp if shape.matches_tcp_flags == 1 => {
            mask(tables, Masks::TCP_FLAGS + u32::from(facts.tcp_flags))
        }
        Transport::Tcp => u64::MAX,
        _ => shape.without_tcp,
    };
    let (sources, destinations) = (
        shape.span(Dimension::SourcePort),
        shape.span(Dimension::DestinationPort),
    );
    if matches!(facts.transport, Transport::Other) {
        limits &= shape.without_ports;
    } else {
        limits &= by_port(tables, sources, facts.source_port);
        limits &= by_port(tables, destinations, facts.destination_port);
    }
    limits
}

#[inline(always)]
fn by_port<T: Tables>(tables: &T, span: Span, port: u16) -> u64 {
    if span.is_empty() {
        u64::MAX
    } else {
        tables.search(span, 0, port.into())
    }
}

#[inline(always)]
fn mask<T: Tables>(tables: &T, index: u32) -> u64 {
    match tables.mask(index) {
        Some(limits) => *limits,
        None => 0,
    }
}
