//! Prefixes in the configuration, where YAML takes some for something else.

use ipnet::IpNet;

use super::{
    node::{Node, Value},
    reader::Reader,
};
use crate::prefix::Written;

/// The prefix that a node spells; an address alone is the prefix of its full length. `what`
/// is what it is there for.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    what: &str,
) -> Option<IpNet> {
    const EXPECTED: &str = "an address or prefix, such as '192.0.2.0/24' or '2001:db8::1'";
    let written = text(reader, node, EXPECTED)?;
    match Written::parse(written).and_then(Written::prefix) {
        Ok(prefix) => Some(prefix),
        Err(error) => {
            let why = error.why(EXPECTED);
            reader.error(node.at, format!("invalid {what} '{written}', {why}"));
            None
        }
    }
}

/// The text of an address.
pub(super) fn text<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    expected: &str,
) -> Option<&'n str> {
    let Some((key, written)) = colon_at_end(reader, node) else {
        return reader.text(node, expected);
    };
    reader.error(
        key.at,
        format!(
            "expected {expected}, found a mapping; with a colon at its end it must be in \
             quotes: '{written}:'"
        ),
    );
    None
}

/// An address that ends in a colon, which YAML takes for that of `name: value`: its text
/// without the colon.
pub(super) fn colon_at_end<'n>(
    reader: &Reader<'n, '_>,
    node: &'n Node<'n>,
) -> Option<(&'n Node<'n>, &'n str)> {
    let Value::Mapping(entries) = &node.value else {
        return None;
    };
    let [(key, value)] = entries.as_slice() else {
        return None;
    };
    let text = reader.scalar(key)?;
    (matches!(value.value, Value::Null) && text.contains(':')).then_some((key, text))
}
