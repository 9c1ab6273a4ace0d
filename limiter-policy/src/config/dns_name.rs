//! DNS names in a configuration.

use std::str::FromStr;

use super::{node::Node, reader::Reader};
use crate::policy::InvalidDnsName;

/// Reads a name, or a pattern of names; `expected` describes it, with an example.
pub(super) fn read<'n, T: FromStr<Err = InvalidDnsName>>(
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
