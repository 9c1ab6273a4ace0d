//! How the store is reached.

use std::{fmt, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    ProtocolVersion, RedisConnectionInfo, TlsCertificates, aio::MultiplexedConnection,
};
use thiserror::Error;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(3);

/// How long an answer may take: longer than a read waits for news.
const ANSWER: Duration = Duration::from_secs(8);

/// How the store is reached.
#[derive(Clone)]
pub struct Access {
    /// The name or the address of its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The number of the database.
    pub database: u16,
    /// Its ACL user; `None`: the default one.
    pub user: Option<String>,
    /// The password; `None`: the store asks for none.
    pub password: Option<String>,
    /// How it is known to be the store; `None`: without TLS, nothing says so.
    pub tls: Option<Tls>,
}

/// How a store is known to be the right one.
#[derive(Clone)]
pub struct Tls {
    /// The certificates that its own is checked against, as PEM; `None`: the system's.
    pub certificates: Option<Vec<u8>>,
}

/// Formats all but the password.
impl fmt::Debug for Access {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port, database) = (&self.host, self.port, self.database);
        write!(formatter, "Access({host}:{port}/{database})")
    }
}

/// There is no connection.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ConnectError(String);

impl From<redis::RedisError> for ConnectError {
    fn from(error: redis::RedisError) -> Self {
        Self(error.to_string())
    }
}

impl Access {
    /// Connects, within seconds.
    pub(crate) async fn connect(&self) -> Result<MultiplexedConnection, ConnectError> {
        let client = self.client()?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(ANSWER));
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        Ok(connecting.await?)
    }

    fn client(&self) -> Result<Client, ConnectError> {
        let info = self.info()?;
        let Some(tls) = &self.tls else {
            return Ok(Client::open(info)?);
        };
        // There is one at most; whoever was first has chosen the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificates = TlsCertificates {
            client_tls: None,
            root_cert: tls.certificates.clone(),
        };
        Ok(Client::build_with_tls(info, certificates)?)
    }

    fn info(&self) -> Result<ConnectionInfo, ConnectError> {
        let address = if self.tls.is_some() {
            ConnectionAddr::TcpTls {
                host: self.host.clone(),
                port: self.port,
                insecure: false,
                tls_params: None,
            }
        } else {
            ConnectionAddr::Tcp(self.host.clone(), self.port)
        };
        // The library's name is none of the store's business, and would need one more right.
        let mut settings = RedisConnectionInfo::default()
            .set_db(self.database.into())
            .set_protocol(ProtocolVersion::RESP2)
            .set_skip_set_lib_name();
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        Ok(address.into_connection_info()?.set_redis_settings(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let access = Access {
            host: "store".to_owned(),
            port: 6379,
            database: 0,
            user: None,
            password: Some("hush".to_owned()),
            tls: None,
        };
        assert_eq!(format!("{access:?}"), "Access(store:6379/0)");
    }
}
