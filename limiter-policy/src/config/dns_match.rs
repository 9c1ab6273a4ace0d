//! DNS names, and the parts of `match` on the DNS question.

use std::str::FromStr;

use super::{
    contradictions::{DNS_OPCODE, DNS_TYPE},
    nearest,
    node::{Node, Value},
    reader::{FirstPositions, Reader, read_list},
};
use crate::policy::{DnsMatch, InvalidDnsName, NamePattern};

/// The most names of one limit.
const MOST_NAMES: usize = 10_000;

/// The highest OPCODE.
const MOST_OPCODE: u64 = 15;

/// Reads one name or a list, sorted; `None` if any has an error.
pub(super) fn read_names<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
) -> Option<Vec<NamePattern>> {
    let mut seen = FirstPositions::default();
    let names = read_list(reader, node, "names", |reader, item| {
        let expected = "a name, such as 'www.example.com' or '*.example.com'";
        let name: NamePattern = read_name(reader, item, expected)?;
        let describe = || format!("name '{name}'");
        seen.is_first(reader, name.clone(), item.at, describe)
            .then_some(name)
    })?;
    if names.len() > MOST_NAMES {
        reader.error(node.at, format!("too many names: at most {MOST_NAMES}"));
    }
    Some(names)
}

/// Reads one type or a list, sorted; `None` if any has an error.
pub(super) fn read_types<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Vec<u16>> {
    let mut seen = FirstPositions::default();
    read_list(reader, node, "types", |reader, item| {
        let number = read_type(reader, item)?;
        let describe = || format!("type '{}'", DnsMatch::type_name(number));
        seen.is_first(reader, number, item.at, describe)
            .then_some(number)
    })
}

fn read_type<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<u16> {
    if matches!(node.value, Value::Unsigned(_) | Value::OtherNumber) {
        let number = reader.whole(node, DNS_TYPE, 0..=u64::from(u16::MAX))?;
        return u16::try_from(number).ok();
    }
    let text = reader.text(node, "a type, such as ANY or 257")?;
    let number = DnsMatch::type_of(text);
    if number.is_none() {
        let known = DnsMatch::TYPES.map(|(name, _)| name);
        let message = nearest::unknown(DNS_TYPE, text, &known);
        reader.error(
            node.at,
            format!("{message} (or a number, or such as TYPE257)"),
        );
    }
    number
}

/// Reads one OPCODE or a list, sorted; `None` if any has an error.
pub(super) fn read_opcodes<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Vec<u8>> {
    let mut seen = FirstPositions::default();
    read_list(reader, node, "opcodes", |reader, item| {
        let number = match item.value {
            Value::Unsigned(_) | Value::OtherNumber => {
                let number = reader.whole(item, DNS_OPCODE, 0..=MOST_OPCODE)?;
                u8::try_from(number).ok()?
            }
            _ => reader.choice(item, DNS_OPCODE, DnsMatch::OPCODES)?,
        };
        let describe = || format!("opcode '{}'", DnsMatch::opcode_name(number));
        seen.is_first(reader, number, item.at, describe)
            .then_some(number)
    })
}

/// Reads a name, or a pattern of names; `expected` describes it, with an example.
pub(super) fn read_name<'n, T: FromStr<Err = InvalidDnsName>>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    expected: &str,
) -> Option<T> {
    let text = reader.text(node, expected)?;
    match text.parse() {
        Ok(name) => Some(name),
        Err(error) => {
            reader.error(node.at, format!("invalid name '{text}', {error}"));
            None
        }
    }
}
