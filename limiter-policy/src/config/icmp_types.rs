//! The ICMP types of a match.

use super::{
    contradictions::{ICMP_TYPE, PROTOCOL},
    fields::Given,
    nearest,
    node::{Node, Value},
    reader::Reader,
};
use crate::policy::{IcmpTypes, Match, NamedIcmpType};

const PROTOCOLS: [(&str, u8); 2] = [("icmp", Match::ICMP), ("icmpv6", Match::ICMPV6)];

/// Reads the types; none: invalid. `protocols` are the protocols of the match, if it names any.
pub(super) fn read(given: &mut Given<'_, '_, '_>, protocols: &[u8]) -> IcmpTypes {
    let has_types = |number: &u8| PROTOCOLS.iter().any(|(_, one)| one == number);
    if !protocols.iter().all(has_types) {
        given.error(format!(
            "only icmp and icmpv6 have types, but '{PROTOCOL}' names another protocol"
        ));
        return IcmpTypes::default();
    }
    let named = given.list(
        "ICMP types",
        |reader, item| read_type(reader, item, protocols),
        |_, text| format!("{ICMP_TYPE} '{text}'"),
    );
    let mut types = IcmpTypes {
        icmp: named.iter().filter_map(|one| one.icmp).collect(),
        icmpv6: named.iter().filter_map(|one| one.icmpv6).collect(),
    };
    types.icmp.sort_unstable();
    types.icmpv6.sort_unstable();
    for (name, number) in PROTOCOLS {
        let has_none = !named.is_empty() && !types.protocols().contains(&number);
        if protocols.contains(&number) && has_none {
            given.error(format!(
                "{name} has none of these types: leave it out of '{PROTOCOL}'"
            ));
        }
    }
    types
}

/// Reads a type. It must exist in one of the protocols.
fn read_type<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    protocols: &[u8],
) -> Option<NamedIcmpType> {
    match &node.value {
        Value::Text(text) if text.parse::<u64>().is_err() => {
            read_name(reader, node, text, protocols)
        }
        Value::Unsigned(_) | Value::OtherNumber | Value::Text(_) => {
            let number = reader.whole(node, ICMP_TYPE, 0..=u64::from(u8::MAX))?;
            let number = u8::try_from(number).ok()?;
            let in_protocol = |protocol| (protocols == [protocol]).then_some(number);
            let named = NamedIcmpType {
                icmp: in_protocol(Match::ICMP),
                icmpv6: in_protocol(Match::ICMPV6),
            };
            if protocols.len() != 1 {
                let message = format!(
                    "{ICMP_TYPE} '{number}' differs between icmp and icmpv6: set '{PROTOCOL}' to one of \
                     them, or write a name, such as echo-request"
                );
                reader.error(node.at, message);
                return None;
            }
            Some(named)
        }
        _ => {
            reader.unexpected(node, "an ICMP type, such as echo-request or 8");
            None
        }
    }
}

fn read_name<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    name: &str,
    protocols: &[u8],
) -> Option<NamedIcmpType> {
    let Some(named) = IcmpTypes::by_name(name) else {
        let known = IcmpTypes::NAMES.map(|(name, _)| name);
        let message = nearest::unknown(ICMP_TYPE, name, &known);
        reader.error(node.at, format!("{message} (or a number from 0 to 255)"));
        return None;
    };
    let in_protocol = |protocol| {
        let is_counted = protocols.is_empty() || protocols.contains(&protocol);
        named.in_protocol(protocol).filter(|_| is_counted)
    };
    let counted = NamedIcmpType {
        icmp: in_protocol(Match::ICMP),
        icmpv6: in_protocol(Match::ICMPV6),
    };
    if counted.icmp.or(counted.icmpv6).is_some() {
        return Some(counted);
    }
    let (other, _) = PROTOCOLS
        .into_iter()
        .find(|(_, one)| !protocols.contains(one))?;
    let message = format!("only {other} has the type '{name}', which '{PROTOCOL}' leaves out");
    reader.error(node.at, message);
    None
}
