//! The address of a fleet's store: `rediss://user@host:6379/0`, or `rediss://user@a:6379,b:6379/0`.

use std::net::Ipv6Addr;

use super::{node::Node, reader::Reader, variables};
use crate::fleet::{StoreAddress, StoreEndpoint};

/// The port of Valkey and Redis.
const PORT: u16 = 6379;

/// The port of their Sentinels.
const SENTINEL_PORT: u16 = 26379;

/// The most servers or Sentinels that are tried in turn.
const MOST_ENDPOINTS: usize = 16;

const EXPECTED: &str = "an address, such as 'rediss://user@store.example:6379/0'";

/// Reads an address: of servers, or of Sentinels that know a server by its name.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    sentinel: Option<&str>,
) -> Option<StoreAddress> {
    let text = variables::text(reader, node, EXPECTED)?;
    match parse(&text, sentinel) {
        Ok(store) => Some(store),
        // Show no part of the text: a typo may put the password anywhere.
        Err(StoreUrlError::Password) => {
            let message =
                "invalid store: its password belongs in 'password-file', not in its address";
            reader.error(node.at, message);
            None
        }
        Err(StoreUrlError::TooMany) => {
            let message = format!("invalid store: more than {MOST_ENDPOINTS} servers");
            reader.error(node.at, message);
            None
        }
        Err(StoreUrlError::Other) => {
            reader.error(node.at, format!("invalid store: expected {EXPECTED}"));
            None
        }
    }
}

/// The reason why a text is not an address.
#[derive(Debug, PartialEq, Eq)]
enum StoreUrlError {
    Password,
    TooMany,
    Other,
}

fn parse(text: &str, sentinel: Option<&str>) -> Result<StoreAddress, StoreUrlError> {
    let (scheme, rest) = text.split_once("://").ok_or(StoreUrlError::Other)?;
    let tls = match scheme {
        "rediss" => true,
        "redis" => false,
        _ => return Err(StoreUrlError::Other),
    };
    let (endpoints, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, endpoints) = match endpoints.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => return Err(StoreUrlError::Password),
        Some((user, endpoints)) => (Some(user), endpoints),
        None => (None, endpoints),
    };
    if user.is_some_and(|user| !is_word(user)) {
        return Err(StoreUrlError::Other);
    }
    let port = sentinel.map_or(PORT, |_| SENTINEL_PORT);
    let endpoints = endpoints
        .split(',')
        .map(|endpoint| parse_endpoint(endpoint, port));
    let endpoints: Vec<_> = endpoints
        .collect::<Option<_>>()
        .ok_or(StoreUrlError::Other)?;
    if endpoints.len() > MOST_ENDPOINTS {
        return Err(StoreUrlError::TooMany);
    }
    Ok(StoreAddress {
        tls,
        user: user.map(ToOwned::to_owned),
        endpoints,
        sentinel: sentinel.map(ToOwned::to_owned),
        database: number(database, 0).ok_or(StoreUrlError::Other)?,
    })
}

/// Returns whether a text is a name without special characters.
pub(super) fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Reads a host (an IPv6 address is in brackets) and its port, or `otherwise` without a port.
fn parse_endpoint(endpoint: &str, otherwise: u16) -> Option<StoreEndpoint> {
    let (host, port) = if let Some(rest) = endpoint.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        let port = if rest.is_empty() {
            ""
        } else {
            rest.strip_prefix(':')?
        };
        (host, port)
    } else {
        let (host, port) = endpoint.split_once(':').unwrap_or((endpoint, ""));
        (is_word(host).then_some(host)?, port)
    };
    Some(StoreEndpoint {
        host: host.to_owned(),
        port: number(port, otherwise).filter(|port| *port != 0)?,
    })
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
            ("redis://a,[::1],b:1/2", "redis://a:6379,[::1]:6379,b:1/2"),
        ] {
            assert_eq!(parse(text, None).unwrap().to_string(), shown, "{text}");
        }
        assert_eq!(
            parse("rediss://edge@a,b:1", Some("main"))
                .unwrap()
                .to_string(),
            "rediss://edge@a:26379,b:1/0 (Sentinel: main)"
        );
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
            "redis://a,",
            "redis://a,,b",
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
            assert_eq!(parse(text, None), Err(StoreUrlError::Other), "{text}");
        }
        for text in ["redis://user:secret@store", "redis://:secret@store"] {
            assert_eq!(parse(text, None), Err(StoreUrlError::Password), "{text}");
        }
        let many = format!("redis://{}", ["a"; MOST_ENDPOINTS + 1].join(","));
        assert_eq!(parse(&many, None), Err(StoreUrlError::TooMany));
    }
}
