//! A node's part in pushes: the orders it has received, and the daemon's work for them.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::pushes::{Follower, PushState, bounded};
use limiter_policy::config::folder_of;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::memory;
use crate::daemon::{confirm, fleet::handle::Fleet, requests::PushResult, shared::Daemon};

pub(in crate::daemon::fleet) struct Pushes {
    pub(super) follower: Follower,
    pub(super) place: Place,
    /// The file of the current push.
    pub(super) text: Option<Arc<str>>,
    /// The last order in the store; `None`: there was none.
    pub(super) seen: Option<Vec<u8>>,
    /// Whether the store was never read: an order found there may belong to an old push.
    pub(super) is_new: bool,
    /// When the node last followed an order.
    pub(super) received: Option<Instant>,
    pub(super) doing: Option<Doing>,
}

/// The place of a pushed policy.
pub(super) enum Place {
    /// None: this node takes no policies.
    None,
    /// The file that it replaces.
    File(PathBuf),
    /// This node would take one, but cannot remember earlier pushes.
    Forgetful(String),
}

/// The daemon's current work for a push.
pub(super) enum Doing {
    Check(Running),
    Take(Running),
    Keep(Running),
    /// Going back.
    Back,
}

pub(super) type Running = JoinHandle<Result<PushResult, String>>;

impl Pushes {
    pub(in crate::daemon::fleet) fn new(daemon: &Daemon, fleet: &Fleet) -> Self {
        let own = fleet.settings.node.clone();
        let accepted = fleet.settings.accept_policy.as_ref();
        let file = accepted.map(|name| folder_of(&daemon.options.config).join(name));
        let (place, newest) = match file {
            None => (Place::None, None),
            Some(file) => match memory::read(&file) {
                Ok(newest) => (Place::File(file), newest),
                Err(error) => {
                    let name = memory::place(&file).unwrap_or(file);
                    let why = format!(
                        "the file '{}', which has the last push, cannot be read: {error}",
                        name.display()
                    );
                    warn!("no policies are taken from the fleet: {why}; look why, then remove it");
                    (Place::Forgetful(why), None)
                }
            },
        };
        fleet.report().newest_push.clone_from(&newest);
        Self {
            follower: Follower::new(own, newest),
            place,
            text: None,
            seen: None,
            is_new: true,
            received: None,
            doing: None,
        }
    }

    /// Records the result of the daemon's work.
    pub(super) async fn finish(&mut self, daemon: &Daemon, fleet: &Fleet) {
        let is_done = match &self.doing {
            Some(Doing::Check(running) | Doing::Take(running) | Doing::Keep(running)) => {
                running.is_finished()
            }
            Some(Doing::Back) => !confirm::awaits_fleet(daemon),
            None => false,
        };
        if !is_done {
            return;
        }
        let state = match self.doing.take() {
            Some(Doing::Check(running)) => match result(running).await {
                Ok(pushed) => PushState::Would(bounded(&pushed.diff)),
                Err(error) => self.refused(fleet, &error),
            },
            Some(Doing::Take(running)) => match result(running).await {
                Ok(pushed) => {
                    let generation = pushed.generation;
                    info!(
                        generation,
                        "policy {generation} is in force, which {} pushes: it is reverted unless the fleet \
                         confirms it",
                        self.pusher()
                    );
                    PushState::Holds(generation)
                }
                Err(error) => self.refused(fleet, &error),
            },
            Some(Doing::Keep(running)) => match result(running).await {
                Ok(pushed) => {
                    count(fleet, "kept");
                    PushState::Kept(pushed.generation)
                }
                Err(why) => {
                    // The policy is not kept, so end its time now.
                    confirm::hold(daemon, Duration::ZERO);
                    warn!(
                        "the policy that {} pushed is not kept: {why}",
                        self.pusher()
                    );
                    count(fleet, "taken_back");
                    PushState::Back(bounded(&why))
                }
            },
            Some(Doing::Back) => {
                warn!("the policy that {} pushed is taken back", self.pusher());
                count(fleet, "taken_back");
                PushState::Back("it was told to".into())
            }
            None => return,
        };
        self.follower.report(state);
    }

    /// Records that a policy was taken back because its time was over.
    pub(super) fn record_time(&mut self, daemon: &Daemon, fleet: &Fleet) {
        let held = self.follower.held().is_some();
        if held && self.doing.is_none() && !confirm::awaits_fleet(daemon) {
            count(fleet, "taken_back");
            self.follower.went_back("it was not confirmed in time");
        }
    }

    pub(super) fn refused(&self, fleet: &Fleet, why: &str) -> PushState {
        warn!(
            "the policy that {} pushes is not taken: {why}",
            self.pusher()
        );
        count(fleet, "refused");
        PushState::Refuses(bounded(why))
    }

    /// Names the pushing node, for messages.
    fn pusher(&self) -> String {
        let push = self.follower.newest();
        push.map_or_else(String::new, |push| format!("node {}", push.node))
    }
}

/// Returns what the daemon did, or why not.
async fn result(running: Running) -> Result<PushResult, String> {
    let done = running.await;
    done.unwrap_or_else(|error| Err(error.to_string()))
}

fn count(fleet: &Fleet, outcome: &'static str) {
    *fleet.report().pushes.entry(outcome).or_default() += 1;
}
