//! Reads the address and port that a part of the daemon listens on.

use std::net::SocketAddr;

use super::{
    node::{Node, Value},
    reader::Reader,
};

/// Reads an address and port. `None`: it is `off`, or not what is `expected`, which is noted.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    expected: &str,
) -> Option<SocketAddr> {
    let text = reader.text(node, expected)?;
    if text == "off" {
        return None;
    }
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Value::Boolean = node.value {
        reader.unexpected(node, expected);
        return None;
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    let hint = match port.parse::<u16>() {
        Ok(port) => format!("did you mean '127.0.0.1:{port}'?"),
        Err(_) => format!("expected {expected}"),
    };
    reader.error(node.at, format!("invalid listen '{text}', {hint}"));
    None
}
