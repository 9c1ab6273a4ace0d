//! The state file while the daemon runs: saved every minute and when it ends.

mod keeper;
mod resume;

use std::{convert::Infallible, future, sync::Arc};

use limiter_datapath::{
    kernel::{DatapathError, wall_clock_now},
    state::Snapshot,
};
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use tracing::error;

use self::keeper::INTERVAL;
pub(super) use self::{keeper::StateKeeper, resume::Resumed};
use super::{bans, shared::Daemon};

/// Saves the state at once and every minute, forever.
pub(super) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    if daemon.state.is_none() {
        return future::pending().await;
    }
    let mut ticks = interval(INTERVAL);
    // A machine that was suspended has nothing to make up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        save(daemon).await;
    }
}

/// Saves the state once, if a file is configured, while everything else goes on.
pub(super) async fn save(daemon: &Arc<Daemon>) {
    let daemon = Arc::clone(daemon);
    let saved = spawn_blocking(move || {
        if let Some(keeper) = &daemon.state {
            keeper.save(|| capture(&daemon));
        }
    });
    if let Err(error) = saved.await {
        error!("saving the state has failed: {error}");
    }
}

fn capture(daemon: &Daemon) -> Result<Snapshot, DatapathError> {
    let datapath = daemon.datapath();
    Ok(Snapshot {
        saved_at: wall_clock_now(),
        names: datapath.manifest().names.clone(),
        sets: datapath.capture()?,
        bans: bans::save(&datapath)?,
        sieves: datapath.capture_sieves(),
        known: datapath.capture_known()?,
    })
}
