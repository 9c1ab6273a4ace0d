//! Where a fleet's store is: `rediss://user@host:6379/0`, or `rediss://user@a:6379,b:6379/0`.

use std::{fmt, net::Ipv6Addr};

/// The port of Valkey and Redis.
const PORT: u16 = 6379;

/// The port of their Sentinels.
const SENTINEL_PORT: u16 = 26379;

/// The most servers or Sentinels that are tried in turn.
const MOST_SERVERS: usize = 16;

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAddress {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Its ACL user; `None`: the default one.
    pub user: Option<String>,
    /// The addresses of its servers, or of the Sentinels that know them; they are tried in turn.
    pub servers: Vec<ServerAddress>,
    /// The server's name at these Sentinels; `None`: these are servers.
    pub sentinel: Option<String>,
    /// The number of the database.
    pub database: u16,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// The name or the address of the host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A store's address, with the secrets to enter it.
#[derive(Clone)]
pub struct Access {
    /// The address.
    pub store: StoreAddress,
    /// The password of its user; `None`: it needs none.
    pub password: Option<String>,
    /// The certificates, as PEM, that sign the store's own; `None`: the system's.
    pub certificates: Option<Vec<u8>>,
}

impl StoreAddress {
    /// An address, as messages about others describe it.
    pub const EXPECTED: &str = "an address, such as 'rediss://user@store.example:6379/0'";

    /// Reads an address: of servers, or of Sentinels that know a server by its name.
    ///
    /// # Errors
    ///
    /// Why the text is none. Shows no part of it: a typo may put the password anywhere.
    pub fn parse(text: &str, sentinel: Option<&str>) -> Result<Self, String> {
        let other = || format!("expected {}", Self::EXPECTED);
        let (scheme, rest) = text.split_once("://").ok_or_else(other)?;
        let (servers, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, servers) = match servers.rsplit_once('@') {
            Some((user, servers)) => (Some(user), servers),
            None => (None, servers),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err("its password belongs in 'password-file', not in its address".to_owned());
        }
        if user.is_some_and(|user| !is_word(user)) || !matches!(scheme, "redis" | "rediss") {
            return Err(other());
        }
        let port = sentinel.map_or(PORT, |_| SENTINEL_PORT);
        let servers = servers.split(',').map(|server| parse_server(server, port));
        let servers: Vec<_> = servers.collect::<Option<_>>().ok_or_else(other)?;
        if servers.len() > MOST_SERVERS {
            return Err(format!("more than {MOST_SERVERS} servers"));
        }
        Ok(Self {
            tls: scheme == "rediss",
            user: user.map(ToOwned::to_owned),
            servers,
            sentinel: sentinel.map(ToOwned::to_owned),
            database: number(database, 0).ok_or_else(other)?,
        })
    }
}

/// Returns whether a text is a name of a user, a host or a server, without special characters.
#[must_use]
pub fn is_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Reads a host (an IPv6 address is in brackets) and its port, or `otherwise` without a port.
fn parse_server(server: &str, otherwise: u16) -> Option<ServerAddress> {
    let (host, port) = if let Some(rest) = server.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        let port = if rest.is_empty() {
            ""
        } else {
            rest.strip_prefix(':')?
        };
        (host, port)
    } else {
        let (host, port) = server.split_once(':').unwrap_or((server, ""));
        (is_word(host).then_some(host)?, port)
    };
    Some(ServerAddress {
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

/// Formats the address as in a configuration.
impl fmt::Display for StoreAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        write!(formatter, "{scheme}://")?;
        if let Some(user) = &self.user {
            write!(formatter, "{user}@")?;
        }
        let servers: Vec<_> = self.servers.iter().map(ToString::to_string).collect();
        write!(formatter, "{}/{}", servers.join(","), self.database)?;
        match &self.sentinel {
            Some(name) => write!(formatter, " (Sentinel: {name})"),
            None => Ok(()),
        }
    }
}

/// Formats as `host:port`, with brackets around an IPv6 address.
impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, sentinel, shown) in [
            (
                "rediss://edge@store:6380/3",
                None,
                "rediss://edge@store:6380/3",
            ),
            ("redis://127.0.0.1", None, "redis://127.0.0.1:6379/0"),
            ("redis://127.0.0.1/", None, "redis://127.0.0.1:6379/0"),
            (
                "rediss://[2001:db8::1]",
                None,
                "rediss://[2001:db8::1]:6379/0",
            ),
            ("redis://[::1]:1/65535", None, "redis://[::1]:1/65535"),
            (
                "redis://a,[::1],b:1/2",
                None,
                "redis://a:6379,[::1]:6379,b:1/2",
            ),
            (
                "rediss://edge@a,b:1",
                Some("main"),
                "rediss://edge@a:26379,b:1/0 (Sentinel: main)",
            ),
        ] {
            let address = StoreAddress::parse(text, sentinel).unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_none() {
        let wrong = [
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
        ];
        let many = format!("redis://{}", ["a"; MOST_SERVERS + 1].join(","));
        for (texts, why) in [
            (&wrong[..], "expected an address"),
            (
                &["redis://user:secret@store", "redis://:secret@store"],
                "its password",
            ),
            (&[&many], "more than 16"),
        ] {
            for text in texts {
                let error = StoreAddress::parse(text, None).unwrap_err();
                assert!(error.starts_with(why), "{text}: {error}");
            }
        }
    }
}
