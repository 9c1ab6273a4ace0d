//! A *rollout* brings a policy from one node to the fleet: first to a few nodes, the *canaries*, then to the others.
//! Unless an operator keeps it, all nodes go back by themselves.
//!
//! The leading node sends the current command ([`Command`]) each second. Each node,
//! the leading one too, strives for the command's stage if it may, and reports its part ([`Reply`]). The fleet's
//! key authenticates both. The file travels beside the command, which has its SHA-256.
//!
//! A node holds an unconfirmed policy only while it receives commands of the leading node: it goes back `hold_ns`
//! after the last command, even if the leading node is gone. So lost, late or withheld messages never leave
//! one in force.
//!
//! A node believes a command that is fresh ([`MOST_OLD_MS`]), has a higher number than all known commands of
//! its rollout, and belongs to no older rollout than the newest known one. So repeated commands have no effect.
//!
//! An operator may also keep the policy, or go back, from another node. That node adds the wish to its replies, which
//! name the rollout and are numbered as well. The leading node treats it like a local request.

mod error;
mod follower;
mod leader;
mod message;
mod status;
#[cfg(test)]
mod tests;

pub use self::{
    error::{CommandError, RolloutError},
    follower::Work,
    leader::{LeaderMessage, MOST_FILE, RolloutPlan},
    message::{Command, HOLD_NS, MOST_CANARIES, MOST_OLD_MS, Reply, file_digest},
    status::{MOST_TEXT, NodePart, NodeState, RolloutId, RolloutNode, RolloutStage, RolloutStatus},
};
use self::{follower::CurrentRollout, leader::Leader};
use crate::Name;

/// A node's rollouts: the one that it leads, and its part in the newest one. Times are in nanoseconds of the node's
/// clock.
#[derive(Clone, Debug)]
pub struct Rollouts {
    own: Name,
    /// The newest known rollout, remembered across restarts.
    newest: Option<RolloutId>,
    leader: Option<Leader>,
    current: Option<CurrentRollout>,
}

impl Rollouts {
    /// Returns the rollouts of a node. `newest` is the newest rollout that it began to take before it restarted.
    #[must_use]
    pub const fn new(own: Name, newest: Option<RolloutId>) -> Self {
        Self {
            own,
            newest,
            leader: None,
            current: None,
        }
    }

    /// The newest known rollout.
    #[must_use]
    pub const fn newest(&self) -> Option<&RolloutId> {
        self.newest.as_ref()
    }

    /// Begins a rollout to the live nodes.
    pub fn begin(
        &mut self,
        plan: RolloutPlan,
        alive: impl IntoIterator<Item = Name>,
        unix_ms: u64,
        now_ns: u64,
    ) -> Result<RolloutStatus, RolloutError> {
        let leads = |leader: &Leader| !leader.status().over;
        if self.leader.as_ref().is_some_and(leads) {
            return Err(RolloutError::UnderWay(self.own.clone()));
        }
        let other = self.other_rollout(now_ns);
        if let Some(other) = other.filter(|other| other.stage.is_undecided()) {
            return Err(RolloutError::UnderWay(other.rollout.node.clone()));
        }
        // Above all known rollouts, even from a node with a clock that is ahead.
        let newest = self.newest.as_ref();
        let rollout = RolloutId {
            ms: newest.map_or(unix_ms, |newest| unix_ms.max(newest.ms.saturating_add(1))),
            node: self.own.clone(),
        };
        let leader = Leader::new(rollout, plan, alive, now_ns)?;
        Ok(self.leader.insert(leader).status().clone())
    }

    /// Returns the status of the rollout that began here, for `limiter fleet push`.
    pub fn status(&mut self, now_ns: u64) -> Result<RolloutStatus, RolloutError> {
        let leader = self.leader.as_mut().ok_or(RolloutError::Nothing)?;
        leader.query(now_ns);
        // Time passes even while the store is down.
        leader.tick(now_ns);
        Ok(leader.status().clone())
    }

    /// Keeps the policy or takes it back on all nodes. Requests it from the leading node, if that is another one: then the
    /// returned stage is undecided, and `limiter fleet confirm` repeats its request.
    pub fn end(&mut self, keep: bool, now_ns: u64) -> Result<RolloutStatus, RolloutError> {
        let is_other = self.other_rollout(now_ns).is_some();
        match &mut self.leader {
            Some(leader) if !leader.status().over || !is_other => {
                leader.tick(now_ns);
                leader.end(keep, "an operator has it taken back", now_ns)?;
                Ok(leader.status().clone())
            }
            _ if is_other => self.wish(keep, now_ns),
            _ => Err(RolloutError::Nothing),
        }
    }

    /// Advances the rollout that began here, and returns its message to the store, which has this command; `None`: this
    /// node leads none.
    pub fn lead(
        &mut self,
        in_store: Option<&Command>,
        unix_ms: u64,
        now_ns: u64,
    ) -> Option<LeaderMessage> {
        let leader = self.leader.as_mut().filter(|leader| !leader.is_done)?;
        leader.tick(now_ns);
        // Another rollout may have begun; do not overwrite its command.
        let is_newer = |command: &Command| command.rollout > leader.status().rollout;
        if leader.status().over && in_store.is_some_and(is_newer) {
            leader.is_done = true;
            return None;
        }
        Some(leader.message(unix_ms, now_ns))
    }

    /// Handles a reply to the rollout that began here.
    pub fn receive(&mut self, reply: Reply, now_ns: u64) {
        if let Some(leader) = &mut self.leader {
            leader.receive(reply, now_ns);
        }
    }
}
