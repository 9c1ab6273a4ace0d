//! Which server has the fleet's keys.
//!
//! A single server has them. Of a server with replicas, Sentinels say which it is now. In a cluster each
//! server knows which of them has a key: whichever is asked sends to that one. Each node's letters may be on
//! another, all else is on one, by the braces in keys' names.

use redis::{RedisError, Value, aio::MultiplexedConnection, cmd};

use super::{
    access::{Access, ConnectError, Place},
    ask::refused,
    stream::newest_of,
};

/// How often a server of a cluster may send to another before the search ends.
const MOST_HOPS: usize = 3;

/// The most bytes of a host's name, as DNS has it: no longer one is connected to, remembered or shown.
const LONGEST_HOST: usize = 253;

/// A connection, and to which server.
pub(crate) type Connected = (MultiplexedConnection, Place);

/// What a server says of a key.
enum Found {
    Here(MultiplexedConnection),
    Elsewhere(Place),
}

/// Connects to the server that has a key, a stream.
pub(crate) async fn connect(access: &Access, key: &str) -> Result<Connected, ConnectError> {
    let mut first = None;
    for place in &access.places {
        match connect_by(access, place, key).await {
            Ok(connected) => return Ok(connected),
            // What the first says is told: it is the one that should be there.
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| ConnectError::Refused("no address".to_owned())))
}

/// Connects to the server that has a key, by one place that may know it.
async fn connect_by(access: &Access, place: &Place, key: &str) -> Result<Connected, ConnectError> {
    let mut place = match &access.sentinel {
        Some(name) => told_by_sentinel(access, place, name).await?,
        None => place.clone(),
    };
    for _ in 0..=MOST_HOPS {
        match look(access, &place, key).await? {
            Found::Here(connection) => return Ok((connection, place)),
            Found::Elsewhere(other) => place = other,
        }
    }
    Err(ConnectError::Circle)
}

/// Asks a Sentinel where the server of a name is.
async fn told_by_sentinel(
    access: &Access,
    sentinel: &Place,
    name: &str,
) -> Result<Place, ConnectError> {
    let mut connection = access.ask(sentinel).await?;
    let mut question = cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let told: Option<(String, u16)> = question.query_async(&mut connection).await?;
    let (host, port) = told.ok_or_else(|| ConnectError::Unknown(name.to_owned()))?;
    Ok(Place { host, port })
}

/// Asks a server for a key.
async fn look(access: &Access, place: &Place, key: &str) -> Result<Found, ConnectError> {
    let mut connection = access.enter(place).await?;
    let question = newest_of(key);
    match question.query_async::<Value>(&mut connection).await {
        Ok(_) => Ok(Found::Here(connection)),
        Err(error) => match elsewhere(&error, place) {
            Some(other) => Ok(Found::Elsewhere(other)),
            None => Err(refused(error, &[&question]).into()),
        },
    }
}

/// Returns where a server of a cluster sends to; `None`: it does not.
pub(crate) fn elsewhere(error: &RedisError, asked: &Place) -> Option<Place> {
    let (address, _) = error.redirect_node()?;
    place_of(address, asked)
}

/// Reads `host:port`. IPv6 addresses have no brackets there, and a server that does not know its own name
/// leaves the host out: then it is that of the one asked. A host is a name or an address, and no other text.
fn place_of(address: &str, asked: &Place) -> Option<Place> {
    let (host, port) = address.rsplit_once(':')?;
    let host = if host.is_empty() { &asked.host } else { host };
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_".contains(&byte);
    if host.len() > LONGEST_HOST || !host.bytes().all(is_of_host) {
        return None;
    }
    Some(Place {
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_cluster_sends_to() {
        let asked = Place {
            host: "a.example".to_owned(),
            port: 6379,
        };
        let told = |address: &str| place_of(address, &asked).map(|place| place.to_string());
        assert_eq!(told("10.0.0.1:7001").as_deref(), Some("10.0.0.1:7001"));
        assert_eq!(
            told("2001:db8::1:7001").as_deref(),
            Some("[2001:db8::1]:7001")
        );
        assert_eq!(told(":7001").as_deref(), Some("a.example:7001"));
        assert_eq!(told("10.0.0.1"), None);
        assert_eq!(told("10.0.0.1:"), None);
        assert_eq!(told("10.0.0.1:65536"), None);
        assert_eq!(told("\u{1b}[2J:7001"), None);
        assert_eq!(told("a b:7001"), None);
        let long = |length| told(&format!("{}:7001", "a".repeat(length)));
        assert!(long(LONGEST_HOST).is_some());
        assert_eq!(long(LONGEST_HOST + 1), None);
    }
}
