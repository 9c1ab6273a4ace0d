//! The fleet of a host, and the files with its secrets.

use std::path::{Path, PathBuf};

use limiter_common::table::HashKey;
use limiter_fleet::{Access, Key, KeyError, Keys, Name, StoreAddress};

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

    /// Reads the files that entering the store needs.
    ///
    /// # Errors
    ///
    /// One of them cannot be read.
    pub fn access(&self) -> Result<Access, AccessError> {
        let password = self.password_file.as_deref().map(read_password);
        let certificates = self.ca_file.as_deref().map(read_certificates);
        Ok(Access {
            store: self.store.clone(),
            password: password.transpose().map_err(AccessError::Password)?,
            certificates: certificates
                .transpose()
                .map_err(AccessError::Certificates)?,
        })
    }
}

/// A file for entering the store cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The password.
    #[error("the file with its password {0}")]
    Password(#[source] SecretFileError),
    /// The certificates.
    #[error("the file with certificates {0}")]
    Certificates(#[source] FileError),
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
