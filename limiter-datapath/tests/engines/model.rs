//! The meaning of a policy, stated plainly: without tables, sets of limits or look-ups.

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    limit::{Cost, IdFormat},
    packet::{Facts, TcpState, Transport},
};
use limiter_policy::policy::{Fragments, Limit, Match, Mode, OverrideId, Policy, Rate};

use super::{
    question::{self, Question},
    server_name::{self, ConnectionName},
};

/// The names that a packet asks for.
#[derive(Clone, Copy)]
pub(crate) struct PacketNames<'w> {
    /// `None`: the packet has no question.
    pub(crate) question: Option<&'w Question>,
    /// The known name of its connection.
    pub(crate) server_name: &'w ConnectionName,
}

impl PacketNames<'_> {
    /// No names.
    const NONE: Self = Self {
        question: None,
        server_name: &ConnectionName::Nothing,
    };

    /// Whether an override with that id is for the packet's names.
    fn is_for(self, policy: &Policy, limit: &Limit, id: &OverrideId) -> bool {
        let Some(key) = id.name() else {
            return false;
        };
        let mut question = self.question.into_iter();
        let name = self.server_name.name();
        match limit.id_format {
            IdFormat::ServerName => name
                .and_then(|name| server_name::key(policy, name))
                .is_some_and(|one| *one == key.name),
            _ => question.any(|question| question.is_charged_to(policy, limit, key)),
        }
    }
}

/// The rate at which a limit holds a packet; `None`: the limit does not count it.
pub(crate) fn rate(
    policy: &Policy,
    limit: &Limit,
    facts: &Facts,
    wish: PacketNames<'_>,
) -> Option<Rate> {
    let is_counted = |other: &Limit| {
        !other.matching.otherwise
            && (limit.mode == Mode::Observe || other.mode == Mode::Enforce)
            && other.cost == limit.cost
            && other.id_format.name() == limit.id_format.name()
            && other.per_name == limit.per_name
            && counts_alone(policy, other, facts)
    };
    if limit.matching.otherwise && policy.limits.iter().any(is_counted) {
        return None;
    }
    let states = &limit.matching.tcp_states;
    if !states.is_empty() && !states.contains(&assumed_state(facts)) {
        return None;
    }
    if !question::counts(policy, limit, wish.question)
        || !server_name::counts(policy, limit, wish.server_name)
    {
        return None;
    }
    let source = IpAddr::from(facts.source);
    let counts = is_on(policy, limit, source) && counts(limit, facts);
    counts.then(|| rate_of(policy, limit, source, wish))?
}

/// The rate at which a limit holds a source with these names. An override for the source and the name comes
/// first, then one for the name, then one for the source, then the limit's own rate. `None`: the limit has no
/// rate.
fn rate_of(policy: &Policy, limit: &Limit, source: IpAddr, wish: PacketNames<'_>) -> Option<Rate> {
    let subscriber = policy.subscriber_of(source);
    let among = |is_of: &dyn Fn(&OverrideId) -> bool| {
        let overrides = limit.overrides.iter().filter(|other| is_of(&other.id));
        let for_it = overrides.filter_map(|other| match other.id.source() {
            None => Some((0, other.rate)),
            Some(OverrideId::Prefix(prefix)) => {
                (prefix.contains(&source)).then_some((prefix.prefix_len(), other.rate))
            }
            Some(OverrideId::Subscriber(number)) => {
                (subscriber == Some(number)).then_some((0, other.rate))
            }
            Some(_) => None,
        });
        let longest = for_it.max_by_key(|(length, _)| *length);
        longest.map(|(_, rate)| rate)
    };
    let asks_for = |id: &OverrideId| wish.is_for(policy, limit, id);
    among(&|id| id.source().is_some() && asks_for(id))
        .or_else(|| among(&|id| id.source().is_none() && asks_for(id)))
        .or_else(|| among(&|id| id.name().is_none()))
        .or(limit.default)
}

/// The state that the engines assume without a network stack. It does not matter to other limits.
fn assumed_state(facts: &Facts) -> TcpState {
    if facts.kind.tcp_flags() & 0x12 == 0x02 {
        TcpState::New
    } else {
        TcpState::Established
    }
}

/// Whether a limit counts a packet, regardless of other limits, of the connection's state, and of the names in
/// it.
fn counts_alone(policy: &Policy, limit: &Limit, facts: &Facts) -> bool {
    let source = IpAddr::from(facts.source);
    let mut overrides = limit.overrides.iter();
    let may_have_rate = overrides.any(|other| other.id.name().is_some())
        || rate_of(policy, limit, source, PacketNames::NONE).is_some();
    may_have_rate && is_on(policy, limit, source) && counts(limit, facts)
}

/// Whether a limit is for a source.
fn is_on(policy: &Policy, limit: &Limit, source: IpAddr) -> bool {
    let for_family = match limit.id_format {
        IdFormat::Ipv4RangeCidr { .. } => source.is_ipv4(),
        IdFormat::Ipv6RangeCidr { .. } => source.is_ipv6(),
        IdFormat::RegId => policy.subscriber_of(source).is_some(),
        IdFormat::IpAddress
        | IdFormat::Destination
        | IdFormat::Zone
        | IdFormat::Domain
        | IdFormat::Question
        | IdFormat::ServerName
        | IdFormat::Total => true,
    };
    limit.mode != Mode::Off && for_family
}

fn counts(limit: &Limit, facts: &Facts) -> bool {
    let wanted = &limit.matching;
    let destination = IpAddr::from(Address {
        family: facts.source.family,
        high: facts.destination_high,
        low: facts.destination_low,
    });
    let is_tcp = facts.protocol == 6;
    let has_ports = matches!(facts.protocol, 6 | 17 | 33 | 132 | 136);
    let needs_ports = !wanted.source_ports.is_empty() || !wanted.destination_ports.is_empty();
    let needs_flags = wanted.tcp_flags.is_some();

    if !wanted.destinations.is_empty()
        && !wanted
            .destinations
            .iter()
            .any(|prefix| prefix.contains(&destination))
    {
        return false;
    }
    let needs_type = !wanted.icmp_types.is_empty();
    // As the parser numbers messages: ICMP, ICMPv6, and ICMPv6 with hop limit 255.
    let (kind, number) = (facts.kind.number() / 256, facts.kind.number() % 256);
    if kind == 2 && (133..=137).contains(&number) && !needs_type {
        return false;
    }
    if !wanted.tcp_states.is_empty() && facts.transport != Transport::Tcp {
        return false;
    }
    if limit.counts_by_server_name() && facts.transport != Transport::Tcp {
        return false;
    }
    if limit.counts_by_question()
        && matches!(
            facts.transport,
            Transport::Unknown | Transport::UnknownProtocol
        )
    {
        return false;
    }
    if facts.transport == Transport::UnknownProtocol {
        // A later IPv6 fragment may belong to any protocol.
        let wants_something =
            needs_ports || needs_flags || needs_type || !wanted.protocols.is_empty();
        return limit.cost != Cost::NewConnections
            && (!wants_something || wanted.fragments == Fragments::Count);
    }
    if !wanted.protocols.is_empty() && !wanted.protocols.contains(&facts.protocol) {
        return false;
    }
    if facts.transport == Transport::Unknown {
        // Only the protocol of a later IPv4 fragment is known.
        return limit.cost != Cost::NewConnections
            && (!(needs_ports || needs_flags || needs_type)
                || wanted.fragments == Fragments::Count)
            && (!wanted.protocols.is_empty() || !needs_flags || is_tcp)
            && (!wanted.protocols.is_empty()
                || !needs_type
                || types_of_protocol(wanted, facts).is_some())
            && (!wanted.protocols.is_empty() || !needs_ports || has_ports);
    }
    let syn_without_ack = is_tcp && facts.kind.tcp_flags() & 0x12 == 0x02;
    let among = |ports: &[std::ops::RangeInclusive<u16>], port| {
        ports.is_empty() || has_ports && ports.iter().any(|range| range.contains(&port))
    };
    (limit.cost != Cost::NewConnections || syn_without_ack)
        && wanted.tcp_flags.is_none_or(|wanted| {
            is_tcp
                && facts.kind.tcp_flags() & wanted.set == wanted.set
                && facts.kind.tcp_flags() & wanted.clear == 0
        })
        && (!needs_type
            || types_of_protocol(wanted, facts)
                .is_some_and(|types| types.iter().any(|one| u16::from(*one) == number)))
        && among(&wanted.source_ports, facts.source_port)
        && among(&wanted.destination_ports, facts.destination_port)
}

/// The types of the packet's protocol that a match names, if any.
fn types_of_protocol<'m>(wanted: &'m Match, facts: &Facts) -> Option<&'m [u8]> {
    let types = match facts.protocol {
        1 => &wanted.icmp_types.icmp,
        58 => &wanted.icmp_types.icmpv6,
        _ => return None,
    };
    (!types.is_empty()).then_some(types)
}
