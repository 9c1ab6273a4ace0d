//! The state file while the daemon runs: saved every minute and when it ends.

mod resume;

use std::{
    convert::Infallible,
    fs, future,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_datapath::{
    kernel::{DatapathError, wall_clock_now},
    state::{LoadError, Reason, SaveError, Snapshot, StateFile},
};
use thiserror::Error;
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use tracing::{error, info, warn};

pub(super) use self::resume::Resumed;
use super::{Daemon, bans};
use crate::protocol::StateStatus;

/// How often it is saved: so much is lost at most when the daemon is killed or the power fails.
const INTERVAL: Duration = Duration::from_mins(1);

/// Saves what buckets owe and who is banned, and remembers how that went.
pub(super) struct StateKeeper {
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
    pub(super) fn new(path: PathBuf) -> Self {
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
    fn load(&self, instead: &str) -> Option<Snapshot> {
        self.file.load().unwrap_or_else(|error| {
            self.warn(&error, instead);
            None
        })
    }

    /// What was loaded cannot be gone on with: it is set aside.
    fn refuse(&self, reason: String, instead: &str) {
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

    fn try_save(&self, daemon: &Daemon) -> Result<Snapshot, KeepError> {
        self.make_way()?;
        let datapath = daemon.datapath();
        let snapshot = Snapshot {
            saved_at: wall_clock_now(),
            names: datapath.manifest().names.clone(),
            sets: datapath.capture()?,
            bans: bans::save(&datapath)?,
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
