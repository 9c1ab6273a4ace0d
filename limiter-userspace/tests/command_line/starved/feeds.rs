//! A feed's owner who misuses the file: leases, and storms of changes.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd as _,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use nix::{sys::stat::Mode, unistd::mkfifo};
use serde_json::json;
use tempfile::TempDir;

use super::{PATIENCE, assert_responds, without_a_lapse};
use crate::{
    pinned::Pinned,
    sieve::{self, flood},
    wait_for,
};

/// Sets the signal for a broken lease: linux/fcntl.h.
const F_SETSIG: libc::c_int = 10;

/// A user who owns no other files.
const NOBODY: u32 = 65_534;

/// A daemon with a feed in a directory of another user.
struct Feeding {
    pinned: Pinned,
    directory: TempDir,
}

impl Feeding {
    fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        chown(directory.path(), Some(NOBODY), Some(NOBODY))?;
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        fs::write(directory.path().join("feed"), "192.0.2.1\n")?;
        let configuration = format!(
            "lists: [{{name: theirs, file: {}}}]\nblock: theirs\n{}",
            directory.path().join("feed").display(),
            sieve::CONFIGURATION
        );
        Ok(Self {
            pinned: Pinned::start(&configuration)?,
            directory,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn is_blocked(&self, address: &str) -> Result<bool> {
        let explanation = self.pinned.limiter.explain(address)?;
        Ok(explanation["lists"]["listing"]["blocked"] == "all")
    }

    /// Returns why the feed's former content stays in use, or `None` if it does not.
    fn kept_old(&self) -> Result<Option<String>> {
        let lists = self.pinned.limiter.ask(&json!({"lists": null}))?;
        Ok(lists[0]["files"][0]["kept_old"].as_str().map(str::to_owned))
    }
}

/// Writes a feed and takes a lease on it, as its owner may. Readers wait until the kernel breaks
/// the lease after 45 seconds.
fn write_and_lease(path: &Path, text: &str) -> Result<File> {
    fs::write(path, text)?;
    let file = File::options().write(true).open(path)?;
    let set = |command, argument: libc::c_int| {
        // SAFETY: both commands take a number.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SIGIO would end this process; it ignores SIGURG.
    set(F_SETSIG, libc::SIGURG)?;
    // A process that another test forks has the file open, too, until it calls exec.
    wait_for(|| match set(libc::F_SETLEASE, libc::F_WRLCK) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        result => Ok(result.map(|()| true)?),
    })
    .context("cannot take a lease")?;
    Ok(file)
}

#[test]
fn feeds_that_would_keep_their_reader_waiting() -> Result<()> {
    let feeding = Feeding::start()?;
    ensure!(feeding.is_blocked("192.0.2.1")?);

    let lease = write_and_lease(&feeding.path("new"), "192.0.2.2\n")?;
    fs::rename(feeding.path("new"), feeding.path("feed"))?;
    wait_for(|| Ok(feeding.kept_old()?.is_some()))?;
    assert_responds(&feeding.pinned)?;
    // The operator's own reload does not wait either: the list keeps its content.
    let begun = Instant::now();
    feeding.pinned.limiter.show(&["reload"])?;
    ensure!(begun.elapsed() < 2 * PATIENCE, "{:?}", begun.elapsed());
    ensure!(feeding.is_blocked("192.0.2.1")?);
    drop(lease);

    mkfifo(&feeding.path("pipe"), Mode::from_bits_truncate(0o666))?;
    fs::rename(feeding.path("pipe"), feeding.path("feed"))?;
    wait_for(|| {
        let kept_old = feeding.kept_old()?;
        Ok(kept_old.is_some_and(|why| why.contains("is not a regular file")))
    })?;
    feeding.pinned.limiter.show(&["reload"])?;
    ensure!(feeding.is_blocked("192.0.2.1")?);

    fs::write(feeding.path("new"), "192.0.2.3\n")?;
    fs::rename(feeding.path("new"), feeding.path("feed"))?;
    wait_for(|| feeding.is_blocked("192.0.2.3"))
}

/// The inotify queue overflows; the daemon still notices the feed's change.
#[test]
fn a_storm_of_changes_beside_a_feed() -> Result<()> {
    let feeding = Feeding::start()?;
    flood(&feeding.pinned, || {
        without_a_lapse(&feeding.pinned, || {
            thread::scope(|scope| {
                let storm = scope.spawn(|| -> Result<()> {
                    // Each makes several events, and the queue has room for 16 384.
                    for change in 0..40_000 {
                        if change == 20_000 {
                            fs::write(feeding.path("new"), "192.0.2.2\n")?;
                            fs::rename(feeding.path("new"), feeding.path("feed"))?;
                        }
                        fs::write(feeding.path("other"), "x")?;
                        fs::rename(feeding.path("other"), feeding.path("another"))?;
                    }
                    Ok(())
                });
                wait_for(|| {
                    assert_responds(&feeding.pinned)?;
                    feeding.is_blocked("192.0.2.2")
                })?;
                storm.join().ok().context("the storm panicked")?
            })
        })
    })
}
