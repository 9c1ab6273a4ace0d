//! Policies that must be confirmed, or else are reverted.

use std::{
    io,
    path::Path,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use limiter_datapath::kernel::{PreviousPolicy, wall_clock_now};
use limiter_policy::policy::diff;
use tokio::task::spawn_blocking;
use tracing::{error, info, warn};

use super::{
    changes::Confirmer, enforcement::Enforcement, error::ConfirmError, messages::log_begun_anew,
    options::Options, replacement, service, watchdog::CHECK_IN_INTERVAL, worker::Worker,
};

/// How long the daemon may take to end.
const TO_END: Duration = Duration::from_secs(5);

/// The confirmation of a policy: who gives it, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confirmation {
    pub(super) confirmer: Confirmer,
    pub(super) patience: Duration,
}

impl Confirmation {
    /// Returns the confirmation that the options of `limiter run` ask for; `None`: policies need none.
    pub(super) fn of(options: &Options) -> Option<Self> {
        options.confirm.map(|patience| Self {
            confirmer: Confirmer::Operator,
            patience,
        })
    }
}

/// Makes the policy in force wait to be confirmed.
pub(super) fn request(
    enforcement: &Enforcement,
    previous: PreviousPolicy,
    confirmation: Confirmation,
) {
    let Confirmation {
        confirmer,
        patience,
    } = confirmation;
    // For a rollout, the fleet's node logs the details itself.
    if confirmer == Confirmer::Operator {
        warn!(
            "the policy is reverted in {} s unless it is confirmed: run `limiter confirm`",
            patience.as_secs_f64()
        );
    }
    let until = Instant::now() + patience;
    let mut changes = enforcement.changes();
    changes.await_confirmation(previous, confirmer, until);
    drop(changes);
    enforcement.unconfirmed.notify_all();
}

/// Keeps the policy in force, as an operator wants; returns its number.
pub(super) async fn confirm(enforcement: &Enforcement) -> Result<u64, ConfirmError> {
    let _alone = enforcement.changing.lock().await;
    match enforcement.changes().confirmer() {
        Some(Confirmer::Operator) => {}
        Some(Confirmer::Fleet) => return Err(ConfirmError::Rollout),
        None => return Err(ConfirmError::Nothing),
    }
    keep(enforcement)
}

/// Keeps the policy in force, as the fleet wants, once the file's text is written to the path that the next start
/// reads; returns its number. A policy that is due to be reverted is not kept.
pub(super) async fn confirm_rollout(
    enforcement: &Enforcement,
    file: &Path,
    text: Arc<str>,
) -> Result<u64, ConfirmError> {
    // The thread that reverts takes this lock, so it waits for the end of this.
    let _alone = enforcement.changing.lock().await;
    {
        let changes = enforcement.changes();
        if changes.confirmer() != Some(Confirmer::Fleet) || changes.is_due(Instant::now()) {
            return Err(ConfirmError::Nothing);
        }
    }
    let path = file.to_owned();
    let written = spawn_blocking(move || replacement::replace(&path, text.as_bytes())).await;
    let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
    written.map_err(|source| ConfirmError::Write {
        file: file.to_owned(),
        source,
    })?;
    keep(enforcement)
}

/// Makes a policy that the fleet is to confirm wait this long from now on. With 0, it is reverted at once.
pub(super) fn hold(enforcement: &Enforcement, patience: Duration) {
    let now = Instant::now();
    enforcement.changes().wait_for_fleet(now + patience, now);
    enforcement.unconfirmed.notify_all();
}

/// Returns whether a policy is in force that the fleet is to confirm.
pub(super) fn awaits_fleet(enforcement: &Enforcement) -> bool {
    enforcement.changes().confirmer() == Some(Confirmer::Fleet)
}

fn keep(enforcement: &Enforcement) -> Result<u64, ConfirmError> {
    let previous = enforcement.changes().take_unconfirmed();
    let previous = previous.ok_or(ConfirmError::Nothing)?;
    enforcement.settled.notify_one();
    let mut datapath = enforcement.datapath_mut();
    datapath.settle(previous)?;
    let generation = datapath.manifest().generation;
    info!(generation, "policy {generation} is confirmed");
    Ok(generation)
}

/// Starts the thread that reverts unconfirmed policies. It has no other work, as a locked-out operator waits for it.
pub(super) fn start(enforcement: &Arc<Enforcement>) -> io::Result<Worker> {
    let (working, ending) = (Arc::clone(enforcement), Arc::clone(enforcement));
    Worker::start(
        "confirmation",
        move || {
            revert_in_time(&working);
            working.watchdog.confirmation.end();
        },
        move || {
            ending.changes().is_over = true;
            ending.unconfirmed.notify_all();
        },
    )
}

/// Reverts policies that are not confirmed in time, until the daemon ends or the first policy is due.
fn revert_in_time(enforcement: &Enforcement) {
    loop {
        enforcement.watchdog.confirmation.check_in();
        let is_due = {
            let changes = enforcement.changes();
            let pause = changes.deadline().map_or(CHECK_IN_INTERVAL, |deadline| {
                deadline
                    .saturating_duration_since(Instant::now())
                    .min(CHECK_IN_INTERVAL)
            });
            let waited = enforcement.unconfirmed.wait_timeout(changes, pause);
            let (changes, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if changes.is_over {
                return;
            }
            changes.is_due(Instant::now())
        };
        if is_due && revert(enforcement) == RevertOutcome::First {
            end(enforcement);
            return;
        }
    }
}

/// Which policy was not confirmed.
#[derive(PartialEq, Eq)]
enum RevertOutcome {
    /// The first policy: there was none before.
    First,
    /// Another one, or it was confirmed at the last moment.
    Another,
}

fn revert(enforcement: &Enforcement) -> RevertOutcome {
    let _alone = enforcement.changing.blocking_lock();
    let previous = {
        let mut changes = enforcement.changes();
        if changes.is_due(Instant::now()) {
            changes.take_unconfirmed()
        } else {
            None
        }
    };
    let Some(previous) = previous else {
        return RevertOutcome::Another;
    };
    let before = previous.manifest().generation;
    if before == 0 {
        return RevertOutcome::First;
    }
    let begun_anew = {
        let datapath = enforcement.datapath();
        diff::discarded_state(&datapath.manifest().policy, &previous.manifest().policy)
    };
    let reverted = enforcement.datapath_mut().revert(previous);
    match reverted {
        Ok(()) => {
            log_begun_anew(&begun_anew);
            let reported = format!("not confirmed in time: policy {before} is in force again");
            warn!(generation = before, "{reported}");
            enforcement
                .changes()
                .record(wall_clock_now(), Some(reported));
        }
        Err(error) => error!("the policy was not confirmed and cannot be reverted: {error}"),
    }
    enforcement.settled.notify_one();
    service::status(&enforcement.datapath);
    RevertOutcome::Another
}

/// Has the daemon end and detach everything. If it is too slow, detaches here.
fn end(enforcement: &Enforcement) {
    enforcement.not_confirmed.notify_one();
    let changes = enforcement.changes();
    let waited = enforcement
        .unconfirmed
        .wait_timeout_while(changes, TO_END, |changes| !changes.is_over);
    let (changes, waited) = waited.unwrap_or_else(PoisonError::into_inner);
    drop(changes);
    if waited.timed_out() {
        warn!("the policy was not confirmed in time, and the daemon is slow to end: detaching");
        if let Err(error) = enforcement.datapath_mut().detach() {
            error!("cannot detach: {error}");
        }
    }
}
