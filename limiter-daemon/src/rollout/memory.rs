//! A file with the newest rollout that a node began to take: after a restart, the node ignores repeated commands
//! of it.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use limiter_fleet::rollout::RolloutId;

use crate::replacement;

/// Reads the newest rollout; `None`: none was taken yet.
///
/// # Errors
///
/// The file cannot be read.
pub(crate) fn read(policy: &Path) -> io::Result<Option<RolloutId>> {
    match fs::read_to_string(place(policy)?) {
        Ok(text) => match text.trim_end().to_owned().try_into() {
            Ok(rollout) => Ok(Some(rollout)),
            Err(error) => Err(io::Error::other(error)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the newest rollout.
///
/// # Errors
///
/// The file cannot be written.
pub(crate) fn write(policy: &Path, rollout: &RolloutId) -> io::Result<()> {
    replacement::replace(&place(policy)?, format!("{rollout}\n").as_bytes())
}

/// Returns the path of the file: beside the policy, with a name that the configuration does not include.
pub(crate) fn place(policy: &Path) -> io::Result<PathBuf> {
    let policy = replacement::target(policy)?;
    let name = policy.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".push");
    Ok(policy.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let policy = directory.path().join("fleet.yaml");
        assert_eq!(read(&policy).unwrap(), None);
        let rollout = "1700000000000 a".to_owned().try_into().unwrap();
        write(&policy, &rollout).unwrap();
        assert_eq!(read(&policy).unwrap(), Some(rollout));
        // A damaged file is an error, not an empty memory.
        fs::write(place(&policy).unwrap(), "17").unwrap();
        assert!(read(&policy).is_err());
    }
}
