//! Whether systemd's journal reads what we write.

use std::{
    env,
    fs::File,
    io,
    os::{fd::AsFd as _, unix::fs::MetadataExt as _},
};

/// Whether stderr is the stream that systemd has put there: a service that redirects it
/// elsewhere inherits the variable all the same.
pub(super) fn is_stderr() -> bool {
    let Ok(announced) = env::var("JOURNAL_STREAM") else {
        return false;
    };
    stderr_identity().is_ok_and(|stderr| stderr == announced)
}

/// As systemd.exec(5) writes it: the numbers of device and inode.
fn stderr_identity() -> io::Result<String> {
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let found = stderr.metadata()?;
    Ok(format!("{}:{}", found.dev(), found.ino()))
}
