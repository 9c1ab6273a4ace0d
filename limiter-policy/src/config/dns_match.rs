//! DNS names, and the parts of `match` on the DNS question.

use std::str::FromStr;

use super::{
    contradictions::{DNS_OPCODE, DNS_TYPE},
    fields::Given,
    nearest,
    node::{Node, Value},
    reader::Reader,
};
use crate::policy::{DnsMatch, InvalidDnsName, NamePattern};

/// The most names of one limit.
const MOST_NAMES: usize = 10_000;

/// The highest OPCODE.
const MOST_OPCODE: u64 = 15;

/// Reads names, or patterns of names.
pub(super) fn read_names(given: &mut Given<'_, '_, '_>) -> Vec<NamePattern> {
    let expected = "a name, such as 'www.example.com' or '*.example.com'";
    let names: Vec<NamePattern> = given.list(
        "names",
        |reader, item| read_name(reader, item, expected),
        |name, _| format!("name '{name}'"),
    );
    if names.len() > MOST_NAMES {
        given.error(format!("too many names: at most {MOST_NAMES}"));
    }
    names
}

pub(super) fn read_types(given: &mut Given<'_, '_, '_>) -> Vec<u16> {
    let describe = |number: &u16, _: &str| format!("type '{}'", DnsMatch::type_name(*number));
    given.list("types", read_type, describe)
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

pub(super) fn read_opcodes(given: &mut Given<'_, '_, '_>) -> Vec<u8> {
    let describe = |number: &u8, _: &str| format!("opcode '{}'", DnsMatch::opcode_name(*number));
    given.list("opcodes", read_opcode, describe)
}

fn read_opcode<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<u8> {
    match node.value {
        Value::Unsigned(_) | Value::OtherNumber => {
            let number = reader.whole(node, DNS_OPCODE, 0..=MOST_OPCODE)?;
            u8::try_from(number).ok()
        }
        _ => reader.choice(node, DNS_OPCODE, DnsMatch::OPCODES),
    }
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
