//! The field `match`: which packets a limit counts.

use limiter_common::{limit::Cost, packet::TcpState, standing::Standing};

use super::{
    contradictions::{
        self, DESTINATION, DESTINATION_PORT, DNS_NAME, DNS_OPCODE, DNS_RD, DNS_TYPE, EDNS,
        FRAGMENTS, ICMP_TYPE, PROTOCOL, SERVER_NAME, SOURCE_PORT, STANDING, STATE, TCP_FLAGS,
    },
    dns_match,
    fields::{self, Field, Given},
    flags, icmp_types,
    limit_id::LimitKeys,
    nearest,
    node::{Node, Value},
    ports, prefix,
    reader::Reader,
};
use crate::policy::{Fragments, Match};

pub(super) const FIELDS: &[Field<Match>] = &[
    Field::new(
        PROTOCOL,
        "`tcp`, `udp`, `icmp`, `icmpv6` or a number, 0 to 255",
        |matching, given| {
            let describe = |_: &u8, text: &str| format!("protocol '{text}'");
            matching.protocols = given.list("protocols", read_protocol, describe);
        },
    ),
    Field::new(
        DESTINATION_PORT,
        "a port, 0 to 65535, or a range: `8000-8099`",
        |matching, given| matching.destination_ports = ports::read(given),
    ),
    Field::new(SOURCE_PORT, "likewise", |matching, given| {
        matching.source_ports = ports::read(given);
    }),
    Field::new(
        TCP_FLAGS,
        "`fin`, `syn`, `rst`, `psh`, `ack`, `urg`, `ece`, `cwr`: all are set; with `!` before it, not set",
        |matching, given| matching.tcp_flags = flags::read(given.reader, given.node),
    ),
    Field::new(
        ICMP_TYPE,
        "[a name](#icmp-type), or a number, 0 to 255, beside `protocol: icmp` or `protocol: icmpv6`",
        |matching, given| {
            // With a wrong protocol, a type's number is ambiguous.
            if given.fields.is_missing(PROTOCOL) || !matching.protocols.is_empty() {
                matching.icmp_types = icmp_types::read(given, &matching.protocols);
            }
        },
    ),
    Field::new(DESTINATION, "an address or a prefix", |matching, given| {
        matching.destinations = given.list(
            "destinations",
            |reader, item| prefix::read(reader, item, DESTINATION),
            |prefix, _| format!("destination '{prefix}'"),
        );
    }),
    Field::new(
        FRAGMENTS,
        "`count` or `ignore` [later fragments](packets.md#fragments) that could match",
        |matching, given| {
            let known = Fragments::ALL.map(|fragments| (fragments.name(), fragments));
            given.choice(&mut matching.fragments, known);
        },
    ),
    Field::new(
        STANDING,
        "`proven`, `familiar`, `fresh`, `retried`, `unknown`: the source's \
         [standing](known-clients.md#the-five-standings)",
        |matching, given| matching.standing = read_standings(given),
    ),
    Field::new(
        STATE,
        "`established`, `new`, `none`: the [state](connections.md#segments-of-no-connection) of a TCP connection",
        |matching, given| matching.tcp_states = read_states(given),
    ),
    Field::new(
        DNS_NAME,
        "a name, or `*.` before one: of the question, in DNS queries over UDP",
        |matching, given| matching.dns.names = dns_match::read_names(given),
    ),
    Field::new(DNS_TYPE, "the question's type", |matching, given| {
        matching.dns.types = dns_match::read_types(given);
    }),
    Field::new(DNS_OPCODE, "the query's opcode", |matching, given| {
        matching.dns.opcodes = dns_match::read_opcodes(given);
    }),
    Field::new(
        DNS_RD,
        "`true` or `false`: whether the query desires recursion",
        |matching, given| given.choice(&mut matching.dns.recursion_desired, FLAGS),
    ),
    Field::new(
        EDNS,
        "`true` or `false`: whether records follow the question, such as EDNS's `OPT`",
        |matching, given| given.choice(&mut matching.dns.edns, FLAGS),
    ),
    Field::new(
        SERVER_NAME,
        "a name, or `*.` before one, that a TCP connection or with `protocol: udp` a QUIC flow asks for",
        |matching, given| matching.server_names = dns_match::read_names(given),
    ),
];

const FLAGS: [(&str, Option<bool>); 2] = [("true", Some(true)), ("false", Some(false))];

/// Reads a limit's match. Checks that depend on an unknown id or cost (`None`) are skipped. Invalid parts are
/// left out.
pub(super) fn read(
    given: &mut Given<'_, '_, '_>,
    id: Option<LimitKeys>,
    cost: Option<Cost>,
) -> Match {
    let mut matching = Match::default();
    let names = fields::names(FIELDS);
    let expected = format!("a map with {}", nearest::alternatives(&names));
    let Some(fields) = given.map(&expected, FIELDS, &mut matching) else {
        return matching;
    };
    // Unknown names were reported already.
    if matches!(&given.node.value, Value::Mapping(entries) if entries.is_empty()) {
        given.error("an empty match selects every packet: leave 'match' out");
    }
    contradictions::check(given.reader, &fields, &matching, id, cost);
    matching
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

fn read_standings(given: &mut Given<'_, '_, '_>) -> Vec<Standing> {
    let known = Standing::ALL.map(|standing| (standing.name(), standing as u32));
    let numbers = given.list(
        "standings",
        |reader, item| reader.choice(item, STANDING, known),
        |number, _| format!("{STANDING} '{}'", Standing::of_number(*number).name()),
    );
    if numbers.len() == Standing::COUNT {
        given.error(format!(
            "every source has one of these: leave '{STANDING}' out"
        ));
    }
    numbers.into_iter().map(Standing::of_number).collect()
}

fn read_states(given: &mut Given<'_, '_, '_>) -> Vec<TcpState> {
    let known = TcpState::NAMED.map(|state| (state.name(), state));
    let states = given.list(
        "states",
        |reader, item| reader.choice(item, STATE, known),
        |state, _| format!("{STATE} '{}'", state.name()),
    );
    if states.len() == TcpState::NAMED.len() {
        given.error(format!(
            "every TCP segment has one of these: leave '{STATE}' out"
        ));
    }
    states
}
