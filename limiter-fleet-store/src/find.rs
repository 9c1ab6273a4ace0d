//! Finds the server that has a key.
//!
//! A single server has all keys. For a server with replicas, Sentinels name the current one. In a cluster,
//! each server knows the keys of all, and redirects. Each node's messages may be on a different server; all
//! other keys of a fleet are on one, by the braces in their names.

use redis::{RedisError, Value, aio::MultiplexedConnection, cmd};

use super::{
    access::{Access, ConnectError, ServerAddress},
    error::StoreError,
    query::refused,
    stream::newest_of,
};

/// How many redirects to follow before the search ends.
const MOST_HOPS: usize = 3;

/// The most bytes of a host's name in DNS: no longer name is used, remembered or shown.
const LONGEST_HOST: usize = 253;

/// A connection, and its server.
pub(crate) type Connected = (MultiplexedConnection, ServerAddress);

/// A server's response about a key.
enum StreamLocation {
    Here(MultiplexedConnection),
    Elsewhere(ServerAddress),
}

/// Connects to the server that has the stream `key`.
pub(crate) async fn connect(access: &Access, key: &str) -> Result<Connected, ConnectError> {
    let mut first = None;
    for place in &access.places {
        match connect_by(access, place, key).await {
            Ok(connected) => return Ok(connected),
            // Report the first server's error: it is the one expected to work.
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| ConnectError::Refused("no address".to_owned())))
}

/// Connects to the server that has a key, starting from one address.
async fn connect_by(
    access: &Access,
    place: &ServerAddress,
    key: &str,
) -> Result<Connected, ConnectError> {
    let mut place = match &access.sentinel {
        Some(name) => query_sentinel(access, place, name).await?,
        None => place.clone(),
    };
    for _ in 0..=MOST_HOPS {
        match probe(access, &place, key).await? {
            StreamLocation::Here(connection) => return Ok((connection, place)),
            StreamLocation::Elsewhere(other) => place = other,
        }
    }
    Err(ConnectError::Circle)
}

/// Queries a Sentinel for the address of the named server.
async fn query_sentinel(
    access: &Access,
    sentinel: &ServerAddress,
    name: &str,
) -> Result<ServerAddress, ConnectError> {
    let mut connection = access.enter_sentinel(sentinel).await?;
    let mut question = cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let reported: Option<(String, String)> = question.query_async(&mut connection).await?;
    let (host, port) = reported.ok_or_else(|| ConnectError::Unknown(name.to_owned()))?;
    let address = format!("{host}:{port}");
    place_of(&address, sentinel).ok_or_else(|| StoreError::Response.into())
}

/// Queries a server whether it has a key.
async fn probe(
    access: &Access,
    place: &ServerAddress,
    key: &str,
) -> Result<StreamLocation, ConnectError> {
    let mut connection = access.enter(place).await?;
    let question = newest_of(key);
    match question.query_async::<Value>(&mut connection).await {
        Ok(_) => Ok(StreamLocation::Here(connection)),
        Err(error) => match elsewhere(&error, place) {
            Some(other) => Ok(StreamLocation::Elsewhere(other)),
            None => Err(refused(error, &[&question]).into()),
        },
    }
}

/// Returns the target of a cluster's redirect; `None`: it is no redirect.
pub(crate) fn elsewhere(error: &RedisError, queried: &ServerAddress) -> Option<ServerAddress> {
    let (address, _) = error.redirect_node()?;
    place_of(address, queried)
}

/// Reads `host:port`. IPv6 addresses have no brackets there. A server that does not know its own name
/// leaves the host out: it is then the queried host. Refuses any text other than a name or an
/// address.
fn place_of(address: &str, queried: &ServerAddress) -> Option<ServerAddress> {
    let (host, port) = address.rsplit_once(':')?;
    let host = if host.is_empty() { &queried.host } else { host };
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_".contains(&byte);
    if host.len() > LONGEST_HOST || !host.bytes().all(is_of_host) {
        return None;
    }
    Some(ServerAddress {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_cluster_sends_to() {
        let queried = ServerAddress {
            host: "a.example".to_owned(),
            port: 6379,
        };
        let reported = |address: &str| place_of(address, &queried).map(|place| place.to_string());
        assert_eq!(reported("10.0.0.1:7001").as_deref(), Some("10.0.0.1:7001"));
        assert_eq!(
            reported("2001:db8::1:7001").as_deref(),
            Some("[2001:db8::1]:7001")
        );
        assert_eq!(reported(":7001").as_deref(), Some("a.example:7001"));
        assert_eq!(reported("10.0.0.1"), None);
        assert_eq!(reported("10.0.0.1:"), None);
        assert_eq!(reported("10.0.0.1:65536"), None);
        assert_eq!(reported("\u{1b}[2J:7001"), None);
        assert_eq!(reported("a b:7001"), None);
        let long = |length| reported(&format!("{}:7001", "a".repeat(length)));
        assert!(long(LONGEST_HOST).is_some());
        assert_eq!(long(LONGEST_HOST + 1), None);
    }
}
