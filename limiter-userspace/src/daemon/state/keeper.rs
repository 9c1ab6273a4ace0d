//! Saves to the state file, and remembers how that went.

use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_datapath::{
    kernel::DatapathError,
    state::{LoadError, Reason, SaveError, Snapshot, StateFile},
};
use thiserror::Error;
use tracing::{info, warn};

use crate::protocol::StateStatus;

/// How often it is saved: so much is lost at most when the daemon is killed or the power fails.
pub(super) const INTERVAL: Duration = Duration::from_mins(1);

/// Saves what buckets owe and who is banned, and remembers how that went.
pub(in crate::daemon) struct StateKeeper {
    file: StateFile,
    /// Why what is in the file was not restored, where it has still its name: nothing is saved over
    /// it.
    in_the_way: Mutex<Option<String>>,
    /// Who holds it is saving.
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
    /// What was saved before was not restored, and is still there.
    #[error(transparent)]
    InTheWay(#[from] LoadError),
}

impl StateKeeper {
    /// For the file at `path`.
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
                errors: 0,
                error: None,
            }),
        }
    }

    /// What was saved last; if that cannot be used, a warning that ends with what is so instead.
    pub(super) fn load(&self, instead: &str) -> Option<Snapshot> {
        self.file.load().unwrap_or_else(|error| {
            self.warn(&error, instead);
            None
        })
    }

    /// What was loaded cannot be gone on with: it is set aside.
    pub(super) fn refuse(&self, reason: String, instead: &str) {
        self.warn(&self.file.refuse(Reason::Unfit(reason)), instead);
    }

    fn warn(&self, error: &LoadError, instead: &str) {
        warn!("{error}; {instead}");
        if let LoadError::InTheWay { reason, .. } = error {
            *locked(&self.in_the_way) = Some(reason.to_string());
        }
    }

    /// Sets aside what could not be set aside before.
    fn make_way(&self) -> Result<(), LoadError> {
        let mut in_the_way = locked(&self.in_the_way);
        let Some(reason) = in_the_way.clone() else {
            return Ok(());
        };
        // Somebody may have taken it away.
        if fs::symlink_metadata(self.file.path()).is_ok() {
            match self.file.refuse(Reason::Unfit(reason)) {
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

    /// How it has gone so far.
    pub(in crate::daemon) fn status(&self) -> StateStatus {
        locked(&self.status).clone()
    }

    /// Saves what `capture` gives; says in the log when that has become possible or impossible.
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
                status.error = None;
            }
            Err(error) => {
                if status.error.is_none() {
                    warn!("{error}; it is tried again every {} s", INTERVAL.as_secs());
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

/// What is in there is right after each assignment, so that a panic elsewhere spoils nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
