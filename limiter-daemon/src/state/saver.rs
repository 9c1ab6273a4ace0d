//! Saves the daemon's state to the state file, and records the outcome.

use std::{
    fs, io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use jiff::Timestamp;
use limiter_datapath::{
    kernel::DatapathError,
    state::{LoadError, Reason, SaveError, Snapshot, StateFile},
};
use limiter_protocol::StateStatus;
use thiserror::Error;
use tracing::{info, warn};

use super::{
    disk::{self, Disk, DiskError},
    summary::{INTERVAL, WriteSummary},
};

/// Saves bucket debts, bans and known sources, and records the outcome.
pub(crate) struct StateSaver {
    file: StateFile,
    /// Why the content of the file was not restored, if it is still there under its name. Until it is set aside,
    /// nothing is saved over it.
    in_the_way: Mutex<Option<Arc<Reason>>>,
    disk: Disk,
    /// The file's content, if written since the daemon started. Held while saving.
    written: Mutex<Option<WriteSummary>>,
    /// Whether the file must be written even if its content suffices.
    is_urgent: AtomicBool,
    status: Mutex<StateStatus>,
}

pub(super) enum CaptureOutcome {
    /// The file suffices for now.
    Suffices(Timestamp),
    /// The file must be written.
    Whole(Snapshot, WriteSummary),
}

#[derive(Debug, Error)]
enum StateFileError {
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The file still has a state that was not restored.
    #[error(transparent)]
    InTheWay(#[from] LoadError),
    /// The disk does not answer.
    #[error("saving hangs: the disk of the state file {} has not answered for {} s", .0.display(), disk::PATIENCE.as_secs())]
    Hangs(PathBuf),
    /// There is no room for another thread.
    #[error("cannot start the thread that saves the state: {0}")]
    Thread(#[from] io::Error),
}

enum SaveOutcome {
    /// The file sufficed at that time.
    Sufficed(Timestamp),
    Written {
        at: Timestamp,
        buckets: u64,
        bans: u64,
        sources: u64,
    },
}

impl StateSaver {
    /// Returns a saver of the file at `path`.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            file: StateFile::new(path.clone()),
            in_the_way: Mutex::new(None),
            disk: Disk::new(disk::PATIENCE),
            written: Mutex::new(None),
            is_urgent: AtomicBool::new(false),
            status: Mutex::new(StateStatus {
                file: path,
                saved_at: None,
                buckets: 0,
                bans: 0,
                sources: 0,
                errors: 0,
                error: None,
            }),
        }
    }

    /// Loads the last saved state. If it is unusable, logs a warning that ends with `instead`.
    pub(super) fn load(&self, instead: &str) -> Option<Snapshot> {
        let file = self.file.clone();
        let loaded = self.at_start(move || file.load());
        let loaded = loaded.unwrap_or_else(|error| {
            Err(LoadError::InTheWay {
                path: self.file.path().to_owned(),
                reason: Arc::new(Reason::Unreadable(error)),
                source: io::Error::other("it was not tried"),
            })
        });
        loaded.unwrap_or_else(|error| {
            self.warn(&error, instead);
            None
        })
    }

    /// Sets the loaded state aside, because the daemon cannot resume from it.
    pub(super) fn refuse(&self, reason: Reason, instead: &str) {
        let (file, reason) = (self.file.clone(), Arc::new(reason));
        let refused = self.at_start({
            let reason = Arc::clone(&reason);
            move || file.refuse(reason)
        });
        let refused = refused.unwrap_or_else(|source| LoadError::InTheWay {
            path: self.file.path().to_owned(),
            reason,
            source,
        });
        self.warn(&refused, instead);
    }

    /// Runs work with the file that the start waits for.
    fn at_start<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let tell = || {
            warn!(
                "reading the state file {} takes longer than {} s: the start waits for it",
                self.file.path().display(),
                disk::PATIENCE.as_secs()
            );
        };
        self.disk
            .wait_for(work, tell)
            .map_err(|undone| match undone {
                DiskError::Hangs => io::Error::other("its thread has failed"),
                DiskError::Thread(error) => error,
            })
    }

    fn warn(&self, error: &LoadError, instead: &str) {
        warn!("{error}; {instead}");
        if let LoadError::InTheWay { reason, .. } = error {
            *locked(&self.in_the_way) = Some(Arc::clone(reason));
        }
    }

    /// Retries to set aside the content in the way.
    fn make_way(&self) -> Result<(), StateFileError> {
        let mut in_the_way = locked(&self.in_the_way);
        let Some(reason) = in_the_way.clone() else {
            return Ok(());
        };
        let file = self.file.clone();
        // An operator may have removed it.
        let refused = self.on_disk(move || is_there(&file).then(|| file.refuse(reason)))?;
        match refused {
            Some(error @ LoadError::InTheWay { .. }) => return Err(error.into()),
            Some(LoadError::SetAside { path, aside, .. }) => {
                warn!(
                    "the state file {} is set aside as {}",
                    path.display(),
                    aside.display()
                );
            }
            None => {}
        }
        *in_the_way = None;
        Ok(())
    }

    /// Runs work with the file.
    fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StateFileError> {
        self.disk.run(work).map_err(|undone| match undone {
            DiskError::Hangs => StateFileError::Hangs(self.file.path().to_owned()),
            DiskError::Thread(error) => StateFileError::Thread(error),
        })
    }

    /// Returns how saving has gone so far.
    pub(crate) fn status(&self) -> StateStatus {
        locked(&self.status).clone()
    }

    /// Records that an operator has changed known sources, so that the next save writes the file.
    pub(crate) fn hurry(&self) {
        self.is_urgent.store(true, Relaxed);
    }

    /// Saves the state that `capture` returns; logs when saving starts to fail or to work again.
    pub(super) fn save(
        &self,
        capture: impl FnOnce(Option<&WriteSummary>) -> Result<CaptureOutcome, DatapathError>,
    ) {
        self.hurry();
        self.renew(capture);
    }

    /// Does the same, unless the file's content, which `capture` receives, suffices for now.
    pub(super) fn renew(
        &self,
        capture: impl FnOnce(Option<&WriteSummary>) -> Result<CaptureOutcome, DatapathError>,
    ) {
        let saved = self.try_renew(&mut locked(&self.written), capture);
        let mut status = locked(&self.status);
        match saved {
            Ok(saved) => {
                if status.saved_at.is_none() || status.error.is_some() {
                    info!("the state is saved to {}", status.file.display());
                }
                status.saved_at = Some(match saved {
                    SaveOutcome::Sufficed(at) => at,
                    SaveOutcome::Written {
                        at,
                        buckets,
                        bans,
                        sources,
                    } => {
                        (status.buckets, status.bans, status.sources) = (buckets, bans, sources);
                        at
                    }
                });
                status.error = None;
            }
            Err(error) => {
                if status.error.is_none() {
                    warn!("{error}; trying again every {} s", INTERVAL.as_secs());
                }
                status.errors += 1;
                status.error = Some(error.to_string());
            }
        }
    }

    fn try_renew(
        &self,
        written: &mut Option<WriteSummary>,
        capture: impl FnOnce(Option<&WriteSummary>) -> Result<CaptureOutcome, DatapathError>,
    ) -> Result<SaveOutcome, StateFileError> {
        self.make_way()?;
        // Reset before the capture: a change during it must make the next save urgent.
        if self.is_urgent.swap(false, Relaxed) {
            *written = None;
        }
        let file = self.file.clone();
        let is_there = self.on_disk(move || is_there(&file))?;
        *written = written.filter(|_| is_there);
        let (snapshot, now) = match capture(written.as_ref())? {
            CaptureOutcome::Suffices(at) => return Ok(SaveOutcome::Sufficed(at)),
            CaptureOutcome::Whole(snapshot, now) => (snapshot, now),
        };
        let saved = SaveOutcome::Written {
            at: snapshot.saved_at,
            buckets: snapshot.count(),
            bans: snapshot.bans.len() as u64,
            sources: snapshot.known.sources.len() as u64,
        };
        // Unknown until the file is written.
        *written = None;
        let file = self.file.clone();
        self.on_disk(move || file.save(&snapshot))??;
        *written = Some(now);
        Ok(saved)
    }
}

fn is_there(file: &StateFile) -> bool {
    fs::symlink_metadata(file.path()).is_ok()
}

/// The content is valid after each assignment, so a panic elsewhere spoils nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
