//! Connects to the server that has a fleet's keys.
//!
//! A single server has all keys. For a server with replicas, Sentinels name the current one. In a cluster, each server
//! knows the keys of all, and redirects; the braces in their names keep all keys of a fleet on one.
//!
//! The library's own clients for Sentinels and clusters open their connections themselves, without the
//! [bound](BoundedStream) on responses.

use std::{io, sync::Arc, time::Duration};

use limiter_fleet::{Access, ServerAddress};
use redis::{
    AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, RedisError, Value,
    aio::MultiplexedConnection, cmd,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    bounded::BoundedStream,
    query::{StoreError, refused},
    stream::newest_of,
};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a response may take: longer than a read waits for messages.
const RESPONSE: Duration = Duration::from_secs(8);

/// How many redirects to follow before the search ends.
const MOST_HOPS: usize = 3;

/// The most bytes of a host's name in DNS: no longer name is used, remembered or shown.
const LONGEST_HOST: usize = 253;

/// Connects to the server that has the stream `key`, by the first address that leads to it.
pub(crate) async fn connect(
    access: &Access,
    key: &str,
) -> Result<MultiplexedConnection, StoreError> {
    let mut first = None;
    for address in &access.store.servers {
        match connect_by(access, address, key).await {
            Ok(connection) => return Ok(connection),
            // Report the first server's error: it is the one expected to work.
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| StoreError::failed(&"no address")))
}

/// Connects to the server that has a stream, starting from one address.
async fn connect_by(
    access: &Access,
    address: &ServerAddress,
    key: &str,
) -> Result<MultiplexedConnection, StoreError> {
    let mut address = match &access.store.sentinel {
        Some(name) => query_sentinel(access, address, name).await?,
        None => address.clone(),
    };
    let mut settings = plain().set_db(access.store.database.into());
    if let Some(user) = &access.store.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &access.password {
        settings = settings.set_password(password);
    }
    let question = newest_of(key);
    for _ in 0..=MOST_HOPS {
        let mut connection = enter(access, &address, &settings).await?;
        match question.query_async::<Value>(&mut connection).await {
            Ok(_) => return Ok(connection),
            Err(error) => match elsewhere(&error, &address) {
                Some(other) => address = other,
                None => return Err(refused(error, &[&question])),
            },
        }
    }
    Err(StoreError::Circle)
}

/// Queries a Sentinel for the address of the named server. It has no databases, and its users are not the store's.
async fn query_sentinel(
    access: &Access,
    sentinel: &ServerAddress,
    name: &str,
) -> Result<ServerAddress, StoreError> {
    let mut connection = enter(access, sentinel, &plain()).await?;
    let mut question = cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let reported = question.query_async(&mut connection).await;
    let reported: Option<(String, String)> = reported.map_err(|error| refused(error, &[]))?;
    let (host, port) = reported.ok_or_else(|| StoreError::Unknown(name.to_owned()))?;
    address_of(&format!("{host}:{port}"), sentinel).ok_or(StoreError::Response)
}

/// Returns the target of a cluster's redirect; `None`: it is no redirect.
fn elsewhere(error: &RedisError, queried: &ServerAddress) -> Option<ServerAddress> {
    let (address, _) = error.redirect_node()?;
    address_of(address, queried)
}

/// Reads `host:port`. IPv6 addresses have no brackets there. A server that does not know its own name
/// leaves the host out: it is then the queried host. Refuses any text other than a name or an
/// address.
fn address_of(address: &str, queried: &ServerAddress) -> Option<ServerAddress> {
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

/// Connects to a server or a Sentinel, within seconds.
async fn enter(
    access: &Access,
    address: &ServerAddress,
    settings: &RedisConnectionInfo,
) -> Result<MultiplexedConnection, StoreError> {
    let connecting = async {
        let stream = connect_any(address).await.map_err(failed)?;
        let stream = if access.store.tls {
            let config = tls_config(access.certificates.as_deref())?;
            let host = ServerName::try_from(address.host.clone()).map_err(failed)?;
            let connector = TlsConnector::from(Arc::new(config));
            BoundedStream::new(connector.connect(host, stream).await.map_err(failed)?)
        } else {
            BoundedStream::new(stream)
        };
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(RESPONSE));
        let connected = MultiplexedConnection::new_with_config(settings, stream, config);
        let (connection, driver) = connected.await.map_err(failed)?;
        // It ends with the last clone of the connection.
        tokio::spawn(driver);
        Ok(connection)
    };
    let connected = timeout(CONNECT, connecting).await;
    connected.unwrap_or_else(|_| Err(failed(io::Error::from(io::ErrorKind::TimedOut))))
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::failed(&error)
}

/// Connects to the first address of a host that answers.
async fn connect_any(address: &ServerAddress) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    for address in lookup_host((&*address.host, address.port)).await? {
        attempts.spawn(TcpStream::connect(address));
    }
    let mut connected = Err(io::Error::other("its host has no address"));
    while let Some(attempt) = attempts.join_next().await {
        connected = attempt.map_err(io::Error::other).flatten();
        if connected.is_ok() {
            break;
        }
    }
    let stream = connected?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Verifies servers by these certificates, as PEM; `None`: by the system's.
fn tls_config(certificates: Option<&[u8]>) -> Result<ClientConfig, StoreError> {
    let mut roots = RootCertStore::empty();
    if let Some(certificates) = certificates {
        for certificate in CertificateDer::pem_slice_iter(certificates) {
            roots.add(certificate.map_err(failed)?).map_err(failed)?;
        }
    } else {
        let system = rustls_native_certs::load_native_certs();
        if let Some(error) = system.errors.first() {
            return Err(failed(error));
        }
        roots.add_parsable_certificates(system.certs);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(failed)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

pub(crate) fn plain() -> RedisConnectionInfo {
    // Without the library's name: sending it would need one more right.
    RedisConnectionInfo::default()
        .set_protocol(ProtocolVersion::RESP2)
        .set_skip_set_lib_name()
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
        let longest = format!("{}:7001", "a".repeat(LONGEST_HOST));
        for (text, expected) in [
            ("10.0.0.1:7001", Some("10.0.0.1:7001")),
            ("2001:db8::1:7001", Some("[2001:db8::1]:7001")),
            (":7001", Some("a.example:7001")),
            (&longest, Some(&*longest)),
            (&format!("a{longest}"), None),
            ("10.0.0.1", None),
            ("10.0.0.1:", None),
            ("10.0.0.1:65536", None),
            ("\u{1b}[2J:7001", None),
            ("a b:7001", None),
        ] {
            let reported = address_of(text, &queried).map(|address| address.to_string());
            assert_eq!(reported.as_deref(), expected, "{text}");
        }
    }
}
