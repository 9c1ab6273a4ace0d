//! Addresses of remote logins, from the records of logind and of sshd (in utmp). Names are ignored: the owner
//! of the peer's reverse DNS chooses them.

mod logind;
mod utmp;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _},
    net::IpAddr,
    path::{Path, PathBuf},
};

use thiserror::Error;

const SESSIONS: &str = "/run/systemd/sessions";
const UTMP: &str = "/run/utmp";

/// The most bytes of a session's file.
const LONGEST_SESSION: u64 = 64 << 10;

/// The most bytes of utmp: some ten thousand records.
const LONGEST_UTMP: u64 = 4 << 20;

/// A file cannot be read.
#[derive(Debug, Error)]
#[error("cannot read {}: {error}", path.display())]
pub struct RecordError {
    path: PathBuf,
    error: io::Error,
}

/// Returns the addresses of users logged in over the network; none on a machine without such records.
pub(super) fn addresses() -> Result<BTreeSet<IpAddr>, RecordError> {
    let mut addresses = BTreeSet::new();
    for session in files_of(Path::new(SESSIONS))? {
        let session = read(&session, LONGEST_SESSION)?;
        addresses.extend(session.and_then(|session| logind::address(&session)));
    }
    if let Some(records) = read(Path::new(UTMP), LONGEST_UTMP)? {
        addresses.extend(utmp::addresses(&records));
    }
    Ok(addresses)
}

/// Returns whether the system records logins.
#[must_use]
pub fn are_kept() -> bool {
    [SESSIONS, UTMP].iter().any(|path| Path::new(path).exists())
}

/// Returns the sessions' files, except files with a dot in the name: logind creates them as pipes to watch a
/// session.
fn files_of(directory: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let reported = |error| RecordError {
        path: directory.to_owned(),
        error,
    };
    let entries = match directory.read_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(reported)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(reported)?;
        let name = entry.file_name();
        if !name.as_encoded_bytes().contains(&b'.') {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// Returns a file's bytes; `None`: it does not exist.
fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, RecordError> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            let message = format!("it is longer than {most} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError {
            path: path.to_owned(),
            error,
        }),
    }
}
