//! The fleet of a host: the address of its store, and the files with its secrets.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use limiter_common::table::HashKey;
use limiter_fleet::{Key, KeyError, Keys, Name};

use crate::file::{FileError, read_at_most};

/// The largest file with a secret or with certificates, in MiB.
const MAX_MIB: u64 = 1;

/// All permissions of users other than the file's owner.
const OTHERS: u32 = 0o077;

/// The fleet of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Its name, the same on all nodes.
    pub name: Name,
    /// This node's name, unique in the fleet.
    pub node: Name,
    /// The most nodes that run at once. Each has such a part of all minimum shares.
    pub nodes: u32,
    /// The store, through which nodes exchange messages.
    pub store: StoreAddress,
    /// The file with the password of the store's user; `None`: the store asks for none.
    pub password_file: Option<PathBuf>,
    /// The file with the fleet's key.
    pub key_file: PathBuf,
    /// The file with the certificates that the store's certificate is checked against; `None`: the system's.
    pub ca_file: Option<PathBuf>,
    /// The name of the file, in the folder beside the configuration, that other nodes may replace; `None`:
    /// they may not.
    pub accept_policy: Option<String>,
    /// Whether nodes share the sources that they have proven.
    pub known_sources: bool,
}

impl Fleet {
    /// Returns the secret for numbering names alike on all nodes. It changes with the key that authenticates
    /// messages.
    #[must_use]
    pub fn names_key(&self, keys: &Keys) -> HashKey {
        let [first, second] = keys.names_secret(&self.name);
        HashKey { first, second }
    }
}

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAddress {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// Its ACL user; `None`: the default one.
    pub user: Option<String>,
    /// The addresses of its servers, or of the Sentinels that know them; they are tried in turn.
    pub endpoints: Vec<StoreEndpoint>,
    /// The server's name at these Sentinels; `None`: these are servers.
    pub sentinel: Option<String>,
    /// The number of the database.
    pub database: u16,
}

/// Formats the address as in a configuration.
impl fmt::Display for StoreAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        write!(formatter, "{scheme}://")?;
        if let Some(user) = &self.user {
            write!(formatter, "{user}@")?;
        }
        for (number, StoreEndpoint { host, port }) in self.endpoints.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            if host.contains(':') {
                write!(formatter, "{comma}[{host}]:{port}")?;
            } else {
                write!(formatter, "{comma}{host}:{port}")?;
            }
        }
        write!(formatter, "/{}", self.database)?;
        match &self.sentinel {
            Some(name) => write!(formatter, " (Sentinel: {name})"),
            None => Ok(()),
        }
    }
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreEndpoint {
    /// The name or the address of the host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The reason why a file has no secret of the fleet.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// It is unreadable.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Users other than its owner have these permissions on it.
    #[error("is open to others than its owner (mode {0:04o}): `chmod 600` it")]
    TooOpen(u32),
    /// It has no lines, or only blank ones.
    #[error("is empty: expected a secret on its first line")]
    Empty,
    /// It has more lines than have a meaning.
    #[error("has more than {0}")]
    TooMany(&'static str),
    /// It is not text.
    #[error("is not UTF-8 text")]
    NotText,
    /// This line is not a key.
    #[error("has no key of a fleet in line {0}: {1}")]
    Key(usize, #[source] KeyError),
}

/// Reads the fleet's keys. The key on the first line authenticates messages. During a change of keys,
/// messages authenticated with the key on the second line are accepted, too.
///
/// # Errors
///
/// The file is unreadable, is open to others, or holds no key.
pub fn read_keys(path: &Path) -> Result<Keys, SecretFileError> {
    let lines = lines(path)?;
    if lines.len() > 2 {
        return Err(SecretFileError::TooMany(
            "two keys: the current one, and one more that is believed",
        ));
    }
    let keys = (1..).zip(&lines).map(|(number, line)| {
        Key::new(line.as_bytes()).map_err(|error| SecretFileError::Key(number, error))
    });
    let mut keys = keys.collect::<Result<Vec<_>, _>>()?.into_iter();
    let current = keys.next().ok_or(SecretFileError::Empty)?;
    Ok(Keys {
        current,
        other: keys.next(),
    })
}

/// Reads the password of the store's user.
///
/// # Errors
///
/// The file is unreadable, is open to others, or holds no password.
pub fn read_password(path: &Path) -> Result<String, SecretFileError> {
    let mut lines = lines(path)?;
    match lines.len() {
        0 => Err(SecretFileError::Empty),
        1 => Ok(lines.remove(0)),
        _ => Err(SecretFileError::TooMany("one line")),
    }
}

/// Reads the certificates, as PEM, that the store's certificate is checked against.
///
/// # Errors
///
/// The file is unreadable.
pub fn read_certificates(path: &Path) -> Result<Vec<u8>, FileError> {
    Ok(read_at_most(path, MAX_MIB)?.bytes)
}

/// Returns the lines, without blank ones, of a file that only its owner may read.
fn lines(path: &Path) -> Result<Vec<String>, SecretFileError> {
    let content = read_at_most(path, MAX_MIB)?;
    let mode = content.mode & 0o777;
    if mode & OTHERS != 0 {
        return Err(SecretFileError::TooOpen(mode));
    }
    let text = String::from_utf8(content.bytes).map_err(|_| SecretFileError::NotText)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    Ok(lines.map(ToOwned::to_owned).collect())
}
