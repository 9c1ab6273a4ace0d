//! Prefixes in the configuration. YAML reads some of them as another type.

use ipnet::IpNet;

use super::{
    node::{Node, Value},
    reader::Reader,
};
use crate::prefix::AddressOrPrefix;

/// Reads a prefix; an address alone is a prefix of full length. Errors name its role.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    kind: &str,
) -> Option<IpNet> {
    const EXPECTED: &str = "an address or prefix, such as '192.0.2.0/24' or '2001:db8::1'";
    let written = text(reader, node, EXPECTED)?;
    match AddressOrPrefix::parse(written).and_then(AddressOrPrefix::prefix) {
        Ok(prefix) => Some(prefix),
        Err(error) => {
            let why = error.why(EXPECTED);
            reader.error(node.at, format!("invalid {kind} '{written}', {why}"));
            None
        }
    }
}

/// Reads the text of an address or prefix.
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
            "expected {expected}, found a mapping: put an address that ends in a colon in quotes: \
             '{written}:'"
        ),
    );
    None
}

/// Finds an address that ends in a colon: YAML takes that colon for the one in `name: value`.
/// Returns the address's text without it.
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
