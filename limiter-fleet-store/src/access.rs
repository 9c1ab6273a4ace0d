//! How to reach the store.

use std::{fmt, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, ProtocolVersion,
    RedisConnectionInfo, TlsCertificates, aio::MultiplexedConnection,
};
use thiserror::Error;

use super::error::{StoreError, one_line};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long a response may take: longer than a read waits for messages.
const RESPONSE: Duration = Duration::from_secs(8);

/// How to reach the store.
#[derive(Clone)]
pub struct Access {
    /// The addresses of its servers, or of Sentinels; tried in order.
    pub places: Vec<Place>,
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
pub struct Place {
    /// The name or address of its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// Formats as `host:port`, with brackets around an IPv6 address.
impl fmt::Display for Place {
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
        let places: Vec<_> = self.places.iter().map(Place::to_string).collect();
        let (places, database) = (places.join(","), self.database);
        write!(formatter, "Access({places}/{database})")
    }
}

/// Why connecting failed.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No server can be reached, or the server refuses.
    #[error("{}", one_line(.0))]
    Refused(String),
    /// The Sentinels do not know the server.
    #[error("the Sentinels know no server '{0}'")]
    Unknown(String),
    /// The servers of a cluster redirect in a circle.
    #[error("the servers of the cluster name each other as those that have the fleet's keys")]
    Circle,
}

impl From<redis::RedisError> for ConnectError {
    fn from(error: redis::RedisError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<StoreError> for ConnectError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl Access {
    /// Connects to a server of the store, within seconds.
    pub(crate) async fn enter(&self, place: &Place) -> Result<MultiplexedConnection, ConnectError> {
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
        place: &Place,
    ) -> Result<MultiplexedConnection, ConnectError> {
        self.connect_as(place, plain()).await
    }

    async fn connect_as(
        &self,
        place: &Place,
        settings: RedisConnectionInfo,
    ) -> Result<MultiplexedConnection, ConnectError> {
        let address = match self.tls {
            Some(_) => ConnectionAddr::TcpTls {
                host: place.host.clone(),
                port: place.port,
                insecure: false,
                tls_params: None,
            },
            None => ConnectionAddr::Tcp(place.host.clone(), place.port),
        };
        let info = address.into_connection_info()?.set_redis_settings(settings);
        let client = match &self.tls {
            None => Client::open(info)?,
            Some(tls) => {
                // Fails if one is installed already: then it is the same.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let certificates = TlsCertificates {
                    client_tls: None,
                    root_cert: tls.certificates.clone(),
                };
                Client::build_with_tls(info, certificates)?
            }
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(RESPONSE));
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        Ok(connecting.await?)
    }
}

fn plain() -> RedisConnectionInfo {
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
                Place {
                    host: "store".to_owned(),
                    port: 6379,
                },
                Place {
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
