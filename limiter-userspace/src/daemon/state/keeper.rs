//! Saves to the state file, and records the outcome.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_datapath::{
    kernel::DatapathError,
    state::{LoadError, Reason, SaveError, Snapshot, StateFile},
};
use thiserror::Error;
use tracing::{info, warn};

use crate::protocol::StateStatus;

/// How often to save; no more than that is lost if the daemon is killed or the power fails.
pub(super) const INTERVAL: Duration = Duration::from_mins(1);

/// Saves what buckets owe, who is banned and who is known, and records the outcome.
pub(in crate::daemon) struct StateKeeper {
    file: StateFile,
    /// Why the content of the file was not restored, if the file still has its name: nothing is
    /// saved over it.
    in_the_way: Mutex<Option<Arc<Reason>>>,
    /// Held while saving.
    saving: Mutex<()>,
    status: Mutex<StateStatus>,
}

/// The state was not saved.
#[derive(Debug, Error)]
enum KeepError {
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    #[error(transparent)]
    Save(#[from] SaveError),
    /// A state that was not restored is still in the file.
    #[error(transparent)]
    InTheWay(#[from] LoadError),
}

impl StateKeeper {
    /// Returns a keeper of the file at `path`.
    pub(in crate::daemon) fn new(path: PathBuf) -> Self {
        Self {
            file: StateFile::new(path.clone()),
            in_the_way: Mutex::new(None),
            saving: Mutex::new(()),
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

    /// Loads what was saved last. If that cannot be used, logs a warning that ends with `instead`.
    pub(super) fn load(&self, instead: &str) -> Option<Snapshot> {
        self.file.load().unwrap_or_else(|error| {
            self.warn(&error, instead);
            None
        })
    }

    /// Sets what was loaded aside, because the daemon cannot resume from it.
    pub(super) fn refuse(&self, reason: Reason, instead: &str) {
        self.warn(&self.file.refuse(Arc::new(reason)), instead);
    }

    fn warn(&self, error: &LoadError, instead: &str) {
        warn!("{error}; {instead}");
        if let LoadError::InTheWay { reason, .. } = error {
            *locked(&self.in_the_way) = Some(Arc::clone(reason));
        }
    }

    /// Sets aside what could not be set aside before.
    fn make_way(&self) -> Result<(), LoadError> {
        let mut in_the_way = locked(&self.in_the_way);
        let Some(reason) = in_the_way.clone() else {
            return Ok(());
        };
        // Somebody may have removed it.
        if fs::symlink_metadata(self.file.path()).is_ok() {
            match self.file.refuse(reason) {
                error @ LoadError::InTheWay { .. } => return Err(error),
                LoadError::SetAside { path, aside, .. } => {
                    warn!(
                        "the state file {} is set aside as {}",
                        path.display(),
                        aside.display()
                    );
                }
            }
        }
        *in_the_way = None;
        Ok(())
    }

    /// Returns how saving has gone so far.
    pub(in crate::daemon) fn status(&self) -> StateStatus {
        locked(&self.status).clone()
    }

    /// Saves what `capture` returns; logs when that becomes possible or impossible.
    pub(super) fn save(&self, capture: impl FnOnce() -> Result<Snapshot, DatapathError>) {
        let _saving = locked(&self.saving);
        let saved = self.try_save(capture);
        let mut status = locked(&self.status);
        match saved {
            Ok(snapshot) => {
                if status.saved_at.is_none() || status.error.is_some() {
                    info!("the state is saved to {}", status.file.display());
                }
                status.saved_at = Some(snapshot.saved_at);
                status.buckets = snapshot.count();
                status.bans = snapshot.bans.len() as u64;
                status.sources = snapshot.known.sources.len() as u64;
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

    fn try_save(
        &self,
        capture: impl FnOnce() -> Result<Snapshot, DatapathError>,
    ) -> Result<Snapshot, KeepError> {
        self.make_way()?;
        let snapshot = capture()?;
        self.file.save(&snapshot)?;
        Ok(snapshot)
    }
}

/// The content is valid after each assignment, so a panic elsewhere spoils nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
