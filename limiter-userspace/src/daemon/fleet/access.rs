//! How to reach the store, from the settings and the files that they name.

use limiter_fleet_store::{Access, ServerAddress, Tls};
use limiter_policy::fleet::{self, Fleet, SecretFileError};
use thiserror::Error;

/// A file for reaching the store cannot be read.
#[derive(Debug, Error)]
pub(super) enum AccessError {
    /// The store's password cannot be read.
    #[error("the file with its password {0}")]
    Password(#[source] SecretFileError),
    /// The certificates cannot be read.
    #[error("the file with certificates {0}")]
    Certificates(String),
}

pub(super) fn of(settings: &Fleet) -> Result<Access, AccessError> {
    let password = settings.password_file.as_deref().map(fleet::read_password);
    let certificates = settings.ca_file.as_deref().map(fleet::read_certificates);
    let certificates = certificates
        .transpose()
        .map_err(|error| AccessError::Certificates(error.to_string()))?;
    let store = &settings.store;
    let places = store.endpoints.iter().map(|place| ServerAddress {
        host: place.host.clone(),
        port: place.port,
    });
    Ok(Access {
        places: places.collect(),
        sentinel: store.sentinel.clone(),
        database: store.database,
        user: store.user.clone(),
        password: password.transpose().map_err(AccessError::Password)?,
        tls: store.tls.then_some(Tls { certificates }),
    })
}
