//! The state file while the daemon runs: saved every minute and when it ends.

mod resume;

use std::{
    convert::Infallible,
    future,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use thiserror::Error;
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use tracing::{error, info, warn};

pub(super) use self::resume::Resumed;
use super::Daemon;
use crate::{
    control::protocol::StateStatus,
    datapath::{DatapathError, wall_clock_now},
    state::{SaveError, Snapshot, StateFile},
};

/// How often it is saved: so much is lost at most when the daemon is killed or the power fails.
const INTERVAL: Duration = Duration::from_mins(1);

/// Saves what buckets owe, and remembers how that went.
pub(super) struct StateKeeper {
    file: StateFile,
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
}

impl StateKeeper {
    /// For the file at `path`.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            file: StateFile::new(path.clone()),
            saving: Mutex::new(()),
            status: Mutex::new(StateStatus {
                file: path,
                saved_at: None,
                buckets: 0,
                errors: 0,
                error: None,
            }),
        }
    }

    /// How it has gone so far.
    pub(super) fn status(&self) -> StateStatus {
        locked(&self.status).clone()
    }

    /// Saves once; says in the log when that has become possible or impossible.
    fn save(&self, daemon: &Daemon) {
        let _saving = locked(&self.saving);
        let saved = self.try_save(daemon);
        let mut status = locked(&self.status);
        match saved {
            Ok(snapshot) => {
                if status.saved_at.is_none() || status.error.is_some() {
                    info!("the state is saved to {}", status.file.display());
                }
                status.saved_at = Some(snapshot.saved_at);
                status.buckets = snapshot.count();
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

    fn try_save(&self, daemon: &Daemon) -> Result<Snapshot, KeepError> {
        let datapath = daemon.datapath();
        let snapshot = Snapshot {
            saved_at: wall_clock_now(),
            names: datapath.manifest().names.clone(),
            sets: datapath.capture()?,
            sieves: datapath.capture_sieves(),
        };
        drop(datapath);
        self.file.save(&snapshot)?;
        Ok(snapshot)
    }
}

/// Saves the state at once and every minute; forever.
pub(super) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    if daemon.state.is_none() {
        return future::pending().await;
    }
    let mut ticks = interval(INTERVAL);
    // A machine that was suspended has not to make up for it.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        save(daemon).await;
    }
}

/// Saves the state once, if it is wanted, while everything else goes on.
pub(super) async fn save(daemon: &Arc<Daemon>) {
    let daemon = Arc::clone(daemon);
    let saved = spawn_blocking(move || {
        if let Some(keeper) = &daemon.state {
            keeper.save(&daemon);
        }
    });
    if let Err(error) = saved.await {
        error!("saving the state has failed: {error}");
    }
}

/// What is in there is right after each assignment, so that a panic elsewhere spoils nothing.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
