//! Detects whether stderr goes to systemd's journal.

use std::{
    env,
    fs::File,
    io,
    os::{fd::AsFd as _, unix::fs::MetadataExt as _},
};

/// Whether stderr is the stream that systemd opened. The variable alone is not enough: a service
/// that redirects stderr inherits it too.
pub(super) fn is_stderr() -> bool {
    let Ok(announced) = env::var("JOURNAL_STREAM") else {
        return false;
    };
    stderr_identity().is_ok_and(|stderr| stderr == announced)
}

/// Returns the device and inode numbers of stderr, in the format of systemd.exec(5).
fn stderr_identity() -> io::Result<String> {
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let found = stderr.metadata()?;
    Ok(format!("{}:{}", found.dev(), found.ino()))
}
