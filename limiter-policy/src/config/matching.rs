//! The field `match`: which packets a limit counts.

use ipnet::IpNet;
use limiter_common::{limit::Cost, packet::TcpState, standing::Standing};

use super::{
    contradictions::{
        self, DESTINATION, DESTINATION_PORT, DNS_NAME, DNS_OPCODE, DNS_RD, DNS_TYPE, EDNS,
        FRAGMENTS, ICMP_TYPE, PROTOCOL, SERVER_NAME, SOURCE_PORT, STANDING, STATE, TCP_FLAGS,
    },
    dns_match, flags, icmp_types,
    limit_id::LimitKeys,
    nearest,
    node::{Node, Value},
    ports, prefix,
    reader::{FirstPositions, Reader, read_list},
};
use crate::policy::{Fragments, Match};

const FIELDS: [&str; 15] = [
    PROTOCOL,
    DESTINATION_PORT,
    SOURCE_PORT,
    TCP_FLAGS,
    ICMP_TYPE,
    DESTINATION,
    FRAGMENTS,
    STANDING,
    STATE,
    DNS_NAME,
    DNS_TYPE,
    DNS_OPCODE,
    DNS_RD,
    EDNS,
    SERVER_NAME,
];

/// Reads a limit's match. Checks that depend on an unknown id or cost (`None`) are skipped. Invalid parts are
/// left out.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    id: Option<LimitKeys>,
    cost: Option<Cost>,
) -> Match {
    let mut matching = Match::default();
    let expected = format!("a map with {}", nearest::alternatives(&FIELDS));
    let Some(fields) = reader.fields(node, &expected, &FIELDS) else {
        return matching;
    };
    // Unknown names were reported already.
    if matches!(&node.value, Value::Mapping(entries) if entries.is_empty()) {
        reader.error(
            node.at,
            "an empty match selects every packet: leave 'match' out",
        );
    }
    if let Some(node) = fields.get(PROTOCOL) {
        matching.protocols = read_protocols(reader, node).unwrap_or_default();
    }
    if let Some(node) = fields.get(DESTINATION_PORT) {
        matching.destination_ports = ports::read(reader, node).unwrap_or_default();
    }
    if let Some(node) = fields.get(SOURCE_PORT) {
        matching.source_ports = ports::read(reader, node).unwrap_or_default();
    }
    if let Some(node) = fields.get(TCP_FLAGS) {
        matching.tcp_flags = flags::read(reader, node);
    }
    if let Some(node) = fields.get(ICMP_TYPE) {
        // With a wrong protocol, a type's number is ambiguous.
        if fields.is_missing(PROTOCOL) || !matching.protocols.is_empty() {
            let types = icmp_types::read(reader, node, &matching.protocols);
            matching.icmp_types = types.unwrap_or_default();
        }
    }
    if let Some(node) = fields.get(DESTINATION) {
        matching.destinations = read_destinations(reader, node).unwrap_or_default();
    }
    if let Some(node) = fields.get(FRAGMENTS) {
        let known = Fragments::ALL.map(|fragments| (fragments.name(), fragments));
        matching.fragments = reader.choice(node, FRAGMENTS, known).unwrap_or_default();
    }
    if let Some(node) = fields.get(STANDING) {
        matching.standing = read_standings(reader, node).unwrap_or_default();
    }
    if let Some(node) = fields.get(STATE) {
        matching.tcp_states = read_states(reader, node).unwrap_or_default();
    }
    matching.dns = dns_match::read(reader, &fields);
    if let Some(node) = fields.get(SERVER_NAME) {
        matching.server_names = dns_match::read_names(reader, node).unwrap_or_default();
    }
    contradictions::check(reader, &fields, &matching, id, cost);
    matching
}

/// Reads one protocol or a list, sorted; `None`: invalid.
fn read_protocols<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Vec<u8>> {
    let mut seen = FirstPositions::default();
    read_list(reader, node, "protocols", |reader, item| {
        let protocol = read_protocol(reader, item)?;
        let text = reader.scalar(item).unwrap_or_default();
        seen.is_first(reader, protocol, item.at, || format!("protocol '{text}'"))
            .then_some(protocol)
    })
}

fn read_protocol<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<u8> {
    match &node.value {
        Value::Text(text) if text.parse::<u64>().is_err() => {
            let found = Match::PROTOCOLS.iter().find(|(name, _)| name == text);
            if found.is_none() {
                let known = Match::PROTOCOLS.map(|(name, _)| name);
                let message = nearest::unknown(PROTOCOL, text, &known);
                reader.error(node.at, format!("{message} (or a number from 0 to 255)"));
            }
            found.map(|(_, number)| *number)
        }
        Value::Unsigned(_) | Value::OtherNumber | Value::Text(_) => {
            let protocol = reader.whole(node, PROTOCOL, 0..=u64::from(u8::MAX))?;
            u8::try_from(protocol).ok()
        }
        _ => {
            reader.unexpected(node, "a protocol, such as udp or 47");
            None
        }
    }
}

/// Reads one prefix or a list, sorted; `None`: invalid.
fn read_destinations<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Vec<IpNet>> {
    let mut seen = FirstPositions::default();
    read_list(reader, node, "destinations", |reader, item| {
        let prefix = prefix::read(reader, item, DESTINATION)?;
        seen.is_first(reader, prefix, item.at, || {
            format!("destination '{prefix}'")
        })
        .then_some(prefix)
    })
}

/// Reads one standing or a list, sorted; `None`: invalid.
fn read_standings<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Vec<Standing>> {
    let known = Standing::ALL.map(|standing| (standing.name(), standing as u32));
    let mut seen = FirstPositions::default();
    let numbers = read_list(reader, node, "standings", |reader, item| {
        let number = reader.choice(item, STANDING, known)?;
        let name = || format!("{STANDING} '{}'", Standing::of_number(number).name());
        seen.is_first(reader, number, item.at, name)
            .then_some(number)
    })?;
    if numbers.len() == Standing::COUNT {
        let message = format!("every source has one of these: leave '{STANDING}' out");
        reader.error(node.at, message);
    }
    Some(numbers.into_iter().map(Standing::of_number).collect())
}

/// Reads one connection state or a list, sorted; `None`: invalid.
fn read_states<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Vec<TcpState>> {
    let known = TcpState::NAMED.map(|state| (state.name(), state));
    let mut seen = FirstPositions::default();
    let states = read_list(reader, node, "states", |reader, item| {
        let state = reader.choice(item, STATE, known)?;
        let name = || format!("{STATE} '{}'", state.name());
        seen.is_first(reader, state, item.at, name).then_some(state)
    })?;
    if states.len() == TcpState::NAMED.len() {
        let message = format!("every TCP segment has one of these: leave '{STATE}' out");
        reader.error(node.at, message);
    }
    Some(states)
}
