//! How to reach the store.

use std::{fmt, io, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, aio::MultiplexedConnection,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use thiserror::Error;
use tokio::{
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    bounded::BoundedStream,
    error::{StoreError, visible},
};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a response may take: longer than a read waits for messages.
const RESPONSE: Duration = Duration::from_secs(8);

/// How to reach the store.
#[derive(Clone)]
pub struct Access {
    /// The addresses of its servers, or of Sentinels; tried in order.
    pub places: Vec<ServerAddress>,
    /// The name of the server for the Sentinels at these addresses; `None`: the addresses are servers.
    pub sentinel: Option<String>,
    /// The number of the database.
    pub database: u16,
    /// Its ACL user; `None`: the default one.
    pub user: Option<String>,
    /// The password; `None`: the store needs none.
    pub password: Option<String>,
    /// How to verify the store; `None`: without TLS, unverified.
    pub tls: Option<Tls>,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// The name or address of its host.
    pub host: String,
    /// Its port.
    pub port: u16,
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

/// How to verify the store.
#[derive(Clone)]
pub struct Tls {
    /// The certificates that sign the store's own, as PEM; `None`: the system's.
    pub certificates: Option<Vec<u8>>,
}

/// Omits the password.
impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<_> = self.places.iter().map(ServerAddress::to_string).collect();
        let (places, database) = (places.join(","), self.database);
        write!(formatter, "Access({places}/{database})")
    }
}

/// Why connecting failed.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No server can be reached, or the server refuses.
    #[error("{0}")]
    Refused(String),
    /// The Sentinels do not know the server.
    #[error("the Sentinels know no server '{0}'")]
    Unknown(String),
    /// The servers of a cluster redirect in a circle.
    #[error("the servers of the cluster name each other as those that have the fleet's keys")]
    Circle,
}

impl ConnectError {
    pub(crate) fn refused(error: &impl fmt::Display) -> Self {
        Self::Refused(visible(&error.to_string()))
    }
}

impl From<redis::RedisError> for ConnectError {
    fn from(error: redis::RedisError) -> Self {
        Self::refused(&error)
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::refused(&error)
    }
}

impl From<StoreError> for ConnectError {
    fn from(error: StoreError) -> Self {
        // It is visible text already.
        Self::Refused(error.to_string())
    }
}

impl Access {
    /// Connects to a server of the store, within seconds.
    ///
    /// # Errors
    ///
    /// It cannot be reached, or refuses.
    pub async fn enter(
        &self,
        place: &ServerAddress,
    ) -> Result<MultiplexedConnection, ConnectError> {
        let mut settings = plain().set_db(self.database.into());
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        self.connect_as(place, settings).await
    }

    /// Connects to a Sentinel. It has no databases, and its users are not the store's.
    pub(crate) async fn enter_sentinel(
        &self,
        place: &ServerAddress,
    ) -> Result<MultiplexedConnection, ConnectError> {
        self.connect_as(place, plain()).await
    }

    async fn connect_as(
        &self,
        place: &ServerAddress,
        settings: RedisConnectionInfo,
    ) -> Result<MultiplexedConnection, ConnectError> {
        let connecting = async {
            let stream = connect_any(place).await?;
            let stream = match &self.tls {
                None => BoundedStream::new(stream),
                Some(tls) => {
                    let connector = TlsConnector::from(Arc::new(tls.config()?));
                    let host = ServerName::try_from(place.host.clone());
                    let host = host.map_err(|error| ConnectError::refused(&error))?;
                    BoundedStream::new(connector.connect(host, stream).await?)
                }
            };
            let config = AsyncConnectionConfig::new().set_response_timeout(Some(RESPONSE));
            let connected = MultiplexedConnection::new_with_config(&settings, stream, config);
            let (connection, driver) = connected.await?;
            // It ends with the last clone of the connection.
            tokio::spawn(driver);
            Ok(connection)
        };
        let connected = timeout(CONNECT, connecting).await;
        connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }
}

/// Connects to the first address of a host that answers.
async fn connect_any(place: &ServerAddress) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    for address in lookup_host((&*place.host, place.port)).await? {
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

impl Tls {
    fn config(&self) -> Result<ClientConfig, ConnectError> {
        let mut roots = RootCertStore::empty();
        if let Some(certificates) = &self.certificates {
            for certificate in CertificateDer::pem_slice_iter(certificates) {
                let certificate = certificate.map_err(|error| ConnectError::refused(&error))?;
                let added = roots.add(certificate);
                added.map_err(|error| ConnectError::refused(&error))?;
            }
        } else {
            let system = rustls_native_certs::load_native_certs();
            if let Some(error) = system.errors.first() {
                return Err(ConnectError::refused(error));
            }
            roots.add_parsable_certificates(system.certs);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions();
        let config = config.map_err(|error| ConnectError::refused(&error))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
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
    fn passwords_are_not_shown() {
        let access = Access {
            places: vec![
                ServerAddress {
                    host: "store".to_owned(),
                    port: 6379,
                },
                ServerAddress {
                    host: "::1".to_owned(),
                    port: 1,
                },
            ],
            sentinel: None,
            database: 0,
            user: None,
            password: Some("hush".to_owned()),
            tls: None,
        };
        assert_eq!(format!("{access:?}"), "Access(store:6379,[::1]:1/0)");
    }
}
