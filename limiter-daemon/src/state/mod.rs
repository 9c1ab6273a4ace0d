//! The state file while the daemon runs: updated every minute, and saved when the daemon ends.

mod disk;
mod resume;
mod saver;
mod summary;

use std::{convert::Infallible, future, sync::Arc};

use limiter_datapath::{
    kernel::{DatapathError, monotonic_now, wall_clock_now},
    state::{ClockReading, Snapshot},
};
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use tracing::error;

pub(super) use self::{resume::ResumeState, saver::StateSaver};
use self::{
    saver::CaptureOutcome,
    summary::{INTERVAL, WriteSummary},
};
use super::{bans, shared::Daemon};

/// Saves the state at once, and every minute if the file must be written again, forever.
pub(super) async fn maintain(daemon: &Arc<Daemon>) -> Infallible {
    if daemon.state.is_none() {
        return future::pending().await;
    }
    let mut ticks = interval(INTERVAL);
    // After a suspend there are no missed saves to make up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        with_saver(daemon, |saver, daemon| {
            saver.renew(|file| capture(daemon, file));
        })
        .await;
    }
}

/// Saves the state once, if a file is configured, while everything else goes on. Soon gives up on a hanging disk.
pub(super) async fn save(daemon: &Arc<Daemon>) {
    with_saver(daemon, |saver, daemon| {
        saver.save(|file| capture(daemon, file));
    })
    .await;
}

async fn with_saver(daemon: &Arc<Daemon>, then: fn(&StateSaver, &Daemon)) {
    let daemon = Arc::clone(daemon);
    let saved = spawn_blocking(move || {
        if let Some(saver) = &daemon.state {
            then(saver, &daemon);
        }
    });
    if let Err(error) = saved.await {
        error!("saving the state has failed: {error}");
    }
}

/// Captures the state, unless the file suffices: reading half a million bans takes longer than all else that a quiet
/// daemon does in a minute.
fn capture(daemon: &Daemon, file: Option<&WriteSummary>) -> Result<CaptureOutcome, DatapathError> {
    let datapath = daemon.datapath();
    let saved_at = wall_clock_now();
    let at = ClockReading::new(monotonic_now(), saved_at);
    let sets = datapath.capture()?;
    // Before the bans are read: the file may lack a change during the reading, so it must count as new.
    let now = WriteSummary::new(&sets, bans::changes(&datapath, &daemon.bans)?, at);
    if file.is_some_and(|file| file.suffices(&now)) {
        return Ok(CaptureOutcome::Suffices(saved_at));
    }
    let snapshot = Snapshot {
        saved_at,
        names: datapath.manifest().names.clone(),
        sets,
        bans: bans::save(&datapath, at)?,
        hits: bans::save_hits(&datapath)?,
        sieves: datapath.capture_sieves(),
        known: datapath.capture_known()?,
    };
    Ok(CaptureOutcome::Whole(snapshot, now))
}
