//! Reads a listening service's address and port, and its host names.

use std::net::SocketAddr;

use super::{
    node::{Node, Value},
    reader::Reader,
};

/// Reads an address and port. `None`: `off`, or an error, which is reported with the `expected` value.
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

/// Reads the host names that clients may use for a listening service, in lower case.
pub(super) fn read_hosts<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Vec<String> {
    let mut hosts = Vec::new();
    for item in reader.one_or_more(node, "hosts") {
        let Some(name) = reader.text(item, "a host's name") else {
            continue;
        };
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        if is_name {
            hosts.push(name.to_ascii_lowercase());
        } else {
            let message =
                format!("invalid host '{name}', expected a name, such as 'limiter.example.org'");
            reader.error(item.at, message);
        }
    }
    hosts
}
