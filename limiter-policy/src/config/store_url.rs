//! The address of a fleet's store: `rediss://user@host:6379/0`.

use std::net::Ipv6Addr;

use super::{node::Node, reader::Reader};
use crate::fleet::StoreAddress;

/// The port of Valkey and Redis.
const PORT: u16 = 6379;

const EXPECTED: &str = "an address, such as 'rediss://user@store.example:6379/0'";

/// Reads an address.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<StoreAddress> {
    let text = reader.text(node, EXPECTED)?;
    match parse(text) {
        Ok(store) => Some(store),
        // A password is not shown.
        Err(Wrong::Password) => {
            let message =
                "invalid store: its password belongs in 'password-file', not in its address";
            reader.error(node.at, message);
            None
        }
        Err(Wrong::Other) => {
            reader.error(
                node.at,
                format!("invalid store '{text}', expected {EXPECTED}"),
            );
            None
        }
    }
}

/// Why a text is no address.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Password,
    Other,
}

fn parse(text: &str) -> Result<StoreAddress, Wrong> {
    let (scheme, rest) = text.split_once("://").ok_or(Wrong::Other)?;
    let tls = match scheme {
        "rediss" => true,
        "redis" => false,
        _ => return Err(Wrong::Other),
    };
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = match place.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => return Err(Wrong::Password),
        Some((user, place)) => (Some(user), place),
        None => (None, place),
    };
    let (host, port) = parse_place(place).ok_or(Wrong::Other)?;
    let is_word = |text: &str| {
        let mut bytes = text.bytes();
        !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if user.is_some_and(|user| !is_word(user)) {
        return Err(Wrong::Other);
    }
    if !is_word(host) && host.parse::<Ipv6Addr>().is_err() {
        return Err(Wrong::Other);
    }
    Ok(StoreAddress {
        tls,
        user: user.map(ToOwned::to_owned),
        host: host.to_owned(),
        port,
        database: number(database, 0).ok_or(Wrong::Other)?,
    })
}

/// Splits a host, of which an IPv6 address is in brackets, from its port.
fn parse_place(place: &str) -> Option<(&str, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            let port = if rest.is_empty() {
                ""
            } else {
                rest.strip_prefix(':')?
            };
            (host, port)
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    Some((host, number(port, PORT).filter(|port| *port != 0)?))
}

/// Reads a number in digits; an empty text is `otherwise`.
fn number(text: &str, otherwise: u16) -> Option<u16> {
    if text.is_empty() {
        return Some(otherwise);
    }
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, shown) in [
            ("rediss://edge@store:6380/3", "rediss://edge@store:6380/3"),
            ("redis://127.0.0.1", "redis://127.0.0.1:6379/0"),
            ("redis://127.0.0.1/", "redis://127.0.0.1:6379/0"),
            ("rediss://[2001:db8::1]", "rediss://[2001:db8::1]:6379/0"),
            ("redis://[::1]:1/65535", "redis://[::1]:1/65535"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "store",
            "http://store",
            "redis:/store",
            "redis://",
            "redis://@store",
            "redis://a b",
            "redis://store:0",
            "redis://store:65536",
            "redis://store:+1",
            "redis://store/-1",
            "redis://store/0?protocol=resp3",
            "redis://store#x",
            "redis://2001:db8::1",
            "redis://[127.0.0.1]",
            "redis://[::1]x",
            "REDIS://store",
        ] {
            assert_eq!(parse(text), Err(Wrong::Other), "{text}");
        }
        for text in ["redis://user:secret@store", "redis://:secret@store"] {
            assert_eq!(parse(text), Err(Wrong::Password), "{text}");
        }
    }
}
