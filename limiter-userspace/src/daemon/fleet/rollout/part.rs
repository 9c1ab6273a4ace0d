//! A node's part in rollouts: the commands it has received, and the daemon's work for them.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::rollout::{Follower, NodeState, bounded};
use limiter_policy::config::folder_of;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::memory;
use crate::daemon::{
    confirm,
    fleet::handle::Fleet,
    requests::{RolloutResult, RolloutStep},
    shared::Daemon,
};

pub(in crate::daemon::fleet) struct Rollouts {
    pub(super) follower: Follower,
    /// The file that a rollout replaces; `None`: this node takes no policies. An error: it cannot remember earlier
    /// rollouts, and takes none.
    pub(super) file: Result<Option<PathBuf>, String>,
    /// The file of the current rollout.
    pub(super) text: Option<Arc<str>>,
    /// The last command in the store; `None`: there was none.
    pub(super) seen: Option<Vec<u8>>,
    /// Whether the store was never read: a command found there may belong to an old rollout.
    pub(super) is_new: bool,
    /// When the node last followed a command.
    pub(super) received: Option<Instant>,
    pub(super) doing: Option<RolloutTask>,
}

/// The daemon's current work for a rollout.
pub(super) enum RolloutTask {
    Step(RolloutStep, JoinHandle<Result<RolloutResult, String>>),
    /// Going back.
    Back,
}

impl Rollouts {
    pub(in crate::daemon::fleet) fn new(daemon: &Daemon, fleet: &Fleet) -> Self {
        let own = fleet.settings.node.clone();
        let accepted = fleet.settings.accept_policy.as_ref();
        let file = accepted.map(|name| folder_of(&daemon.options.config).join(name));
        let (file, newest) = match file.as_deref().map(memory::read).transpose() {
            Ok(newest) => (Ok(file), newest.flatten()),
            Err(error) => {
                let name = file.map(|file| memory::place(&file).unwrap_or(file));
                let why = format!(
                    "the file '{}', which has the last push, cannot be read: {error}",
                    name.unwrap_or_default().display()
                );
                warn!("no policies are taken from the fleet: {why}; look why, then remove it");
                (Err(why), None)
            }
        };
        fleet.report().newest_rollout.clone_from(&newest);
        Self {
            follower: Follower::new(own, newest),
            file,
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
            Some(RolloutTask::Step(_, running)) => running.is_finished(),
            Some(RolloutTask::Back) => !confirm::awaits_fleet(daemon),
            None => false,
        };
        let state = match self.doing.take_if(|_| is_done) {
            Some(RolloutTask::Step(step, running)) => {
                let done = running.await;
                let done = done.unwrap_or_else(|error| Err(error.to_string()));
                self.state_after(step, done, daemon, fleet)
            }
            Some(RolloutTask::Back) => {
                warn!(
                    "the policy that {} pushed is taken back",
                    self.leader_name()
                );
                count(fleet, "taken_back");
                NodeState::Back("it was told to".into())
            }
            None => return,
        };
        self.follower.report(state);
    }

    /// Returns the state after a step.
    fn state_after(
        &self,
        step: RolloutStep,
        done: Result<RolloutResult, String>,
        daemon: &Daemon,
        fleet: &Fleet,
    ) -> NodeState {
        match (step, done) {
            (RolloutStep::Check, Ok(checked)) => NodeState::Would(bounded(&checked.diff)),
            (RolloutStep::Take(_), Ok(RolloutResult { generation, .. })) => {
                info!(
                    generation,
                    "policy {generation} is in force, which {} pushes: it is reverted unless the fleet \
                     confirms it",
                    self.leader_name()
                );
                NodeState::Holds(generation)
            }
            (RolloutStep::Check | RolloutStep::Take(_), Err(why)) => self.refused(fleet, &why),
            (RolloutStep::Keep, Ok(kept)) => {
                count(fleet, "kept");
                NodeState::Kept(kept.generation)
            }
            (RolloutStep::Keep, Err(why)) => {
                // The policy is not kept, so end its time now.
                confirm::hold(daemon, Duration::ZERO);
                warn!(
                    "the policy that {} pushed is not kept: {why}",
                    self.leader_name()
                );
                count(fleet, "taken_back");
                NodeState::Back(bounded(&why))
            }
        }
    }

    /// Records that a policy was taken back because its time was over.
    pub(super) fn record_time(&mut self, daemon: &Daemon, fleet: &Fleet) {
        let held = self.follower.held().is_some();
        if held && self.doing.is_none() && !confirm::awaits_fleet(daemon) {
            count(fleet, "taken_back");
            self.follower.went_back("it was not confirmed in time");
        }
    }

    pub(super) fn refused(&self, fleet: &Fleet, why: &str) -> NodeState {
        warn!(
            "the policy that {} pushes is not taken: {why}",
            self.leader_name()
        );
        count(fleet, "refused");
        NodeState::Refuses(bounded(why))
    }

    /// Names the leading node, for messages.
    fn leader_name(&self) -> String {
        let rollout = self.follower.newest();
        rollout.map_or_else(String::new, |rollout| format!("node {}", rollout.node))
    }
}

fn count(fleet: &Fleet, outcome: &'static str) {
    *(fleet.report().pushes.entry(outcome.to_owned())).or_default() += 1;
}
