//! The leading node's part in a rollout.

use serde::{Deserialize, Serialize};

use super::{
    error::RolloutError,
    message::{Command, HOLD_NS, MOST_CANARIES, Reply, file_digest},
    status::{NodeState, RolloutId, RolloutNode, RolloutStage, RolloutStatus},
};
use crate::Name;

const S: u64 = 1_000_000_000;

/// The most bytes of a file.
pub const MOST_FILE: usize = 256 * 1024;

/// How long a node may be silent before it counts as lost, in nanoseconds. Also how long the last command is repeated
/// after the end of a rollout, for nodes that were away for a moment.
const LOST_NS: u64 = 15 * S;

/// How long a node may take to check or enforce a file, in nanoseconds.
const SLOW_NS: u64 = 120 * S;

/// How long `limiter fleet push` may be silent, in nanoseconds.
const ABSENT_NS: u64 = 10 * S;

/// How a file is rolled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutPlan {
    /// The text of the file.
    pub text: String,
    /// How many nodes take the file first, in the order of their names, unless `canaries` names some; 0: all nodes take
    /// it at once.
    pub canary_count: usize,
    /// The names of the nodes that take the file first.
    pub canaries: Vec<Name>,
    /// How long the canaries hold it before the other nodes take it, in nanoseconds.
    pub canary_for_ns: u64,
    /// How long the rollout waits for confirmation, in nanoseconds. Also how long each node holds the policy
    /// without a command of the rollout.
    pub confirm_ns: u64,
    /// Whether nodes only report the changes that the file would make.
    pub dry_run: bool,
    /// Whether the file is kept without confirmation once all nodes have held it for as long as the
    /// canaries.
    pub yes: bool,
}

/// A rollout, on the leading node. Times are in nanoseconds of its own clock.
#[derive(Clone, Debug)]
pub(super) struct Leader {
    plan: RolloutPlan,
    status: RolloutStatus,
    /// The number of the last command.
    number: u64,
    /// The beginning of the stage.
    since_ns: u64,
    /// Since when all canaries hold the file.
    well_since_ns: Option<u64>,
    /// When `limiter fleet push` last queried the status.
    queried_ns: u64,
    /// Whether it has sent its last command.
    pub(super) is_done: bool,
}

/// The leading node's message to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderMessage {
    /// Replace the command, and the file if there is one.
    Command(Command, Option<String>),
    /// Remove the rollout, with the replies of these nodes.
    Remove(Vec<Name>),
}

impl Leader {
    /// Begins a rollout to the live nodes.
    pub(super) fn new(
        rollout: RolloutId,
        plan: RolloutPlan,
        alive: impl IntoIterator<Item = Name>,
        now_ns: u64,
    ) -> Result<Self, RolloutError> {
        if plan.text.len() > MOST_FILE {
            return Err(RolloutError::TooLong);
        }
        if !HOLD_NS.contains(&plan.confirm_ns) || plan.canary_for_ns > *HOLD_NS.end() {
            return Err(RolloutError::Times);
        }
        if plan.canaries.len() > MOST_CANARIES || plan.canary_count > MOST_CANARIES {
            return Err(RolloutError::TooMany);
        }
        let sha256 = file_digest(plan.text.as_bytes());
        let mut status = RolloutStatus::new(rollout, sha256, RolloutStage::Checking);
        status.nodes.extend(alive.into_iter().map(|name| {
            let node = RolloutNode {
                canary: plan.canaries.contains(&name),
                received_ns: now_ns,
                ..RolloutNode::default()
            };
            (name, node)
        }));
        if status.nodes.is_empty() {
            return Err(RolloutError::Nobody);
        }
        let is_unknown = |name: &&Name| !status.nodes.contains_key(*name);
        if let Some(unknown) = plan.canaries.iter().find(is_unknown) {
            return Err(RolloutError::Unknown(unknown.clone()));
        }
        Ok(Self {
            plan,
            status,
            number: 0,
            since_ns: now_ns,
            well_since_ns: None,
            queried_ns: now_ns,
            is_done: false,
        })
    }

    /// The status of the rollout.
    pub(super) const fn status(&self) -> &RolloutStatus {
        &self.status
    }

    /// Records a query of `limiter fleet push`.
    pub(super) const fn query(&mut self, now_ns: u64) {
        self.queried_ns = now_ns;
    }

    /// Handles a reply, and fulfils the wish that an operator gave on the replying node.
    pub(super) fn receive(&mut self, reply: Reply, now_ns: u64) {
        let Some(node) = self.status.nodes.get_mut(&reply.node) else {
            return;
        };
        // A repeated reply does not prove that the node is alive.
        if reply.rollout != self.status.rollout || reply.number <= node.number {
            return;
        }
        (node.number, node.received_ns) = (reply.number, now_ns);
        let diff = node.part.diff.take();
        node.part = reply.part;
        node.part.diff = node.part.diff.take().or(diff);
        if let Some(keep) = reply.wish {
            let why = format!("an operator on node {} has it taken back", reply.node);
            // It may be too early, or repeated.
            let _ = self.end(keep, &why, now_ns);
        }
    }

    /// Keeps the policy, if the rollout waits for confirmation; or takes it back, unless it is decided.
    pub(super) fn end(&mut self, keep: bool, why: &str, now_ns: u64) -> Result<(), RolloutError> {
        match (keep, self.status.stage) {
            (true, RolloutStage::Waiting) => self.enter(RolloutStage::Keeping, now_ns),
            (true, _) => return Err(RolloutError::NotWaiting),
            (false, stage) if stage.is_undecided() => self.take_back(why.to_owned(), now_ns),
            (false, _) => return Err(RolloutError::Decided),
        }
        Ok(())
    }

    fn take_back(&mut self, why: String, now_ns: u64) {
        self.status.why = Some(why);
        self.enter(RolloutStage::GoingBack, now_ns);
    }

    /// Advances the rollout.
    pub(super) fn tick(&mut self, now_ns: u64) {
        match self.next_stage(now_ns) {
            Ok(stage) if stage != self.status.stage => self.enter(stage, now_ns),
            Ok(_) => {}
            Err(why) => self.take_back(why, now_ns),
        }
        let left_ns = (self.since_ns + self.plan.confirm_ns).saturating_sub(now_ns);
        self.status.left_ns = (self.status.stage == RolloutStage::Waiting).then_some(left_ns);
    }

    /// Returns the stage that the rollout should be at, or why it cannot go on.
    fn next_stage(&mut self, now_ns: u64) -> Result<RolloutStage, String> {
        if self.status.stage.is_undecided() {
            self.check_nodes(now_ns)?;
        }
        let stage_ns = now_ns.saturating_sub(self.since_ns);
        let is_done = self.recipients().all(|(_, node)| self.has_done_stage(node));
        let is_over = is_done || stage_ns > LOST_NS;
        Ok(match self.status.stage {
            RolloutStage::Checking if is_done => self.choose_canaries()?,
            RolloutStage::Canaries if is_done => {
                let since_ns = *self.well_since_ns.get_or_insert(now_ns);
                if now_ns.saturating_sub(since_ns) < self.plan.canary_for_ns {
                    RolloutStage::Canaries
                } else {
                    RolloutStage::Others
                }
            }
            RolloutStage::Others if is_done => RolloutStage::Waiting,
            RolloutStage::Waiting => {
                let well_ns = self.plan.canary_for_ns.min(self.plan.confirm_ns / 2);
                if self.plan.yes && stage_ns > well_ns {
                    RolloutStage::Keeping
                } else if stage_ns < self.plan.confirm_ns {
                    RolloutStage::Waiting
                } else {
                    return Err("nobody has confirmed it in time".to_owned());
                }
            }
            RolloutStage::Keeping if is_over => {
                let kept = |(_, node): (&Name, &RolloutNode)| node.part.state == NodeState::Kept;
                match (self.recipients().all(kept), self.recipients().any(kept)) {
                    (true, _) => RolloutStage::Kept,
                    (false, true) => RolloutStage::KeptBySome,
                    (false, false) => RolloutStage::TakenBack,
                }
            }
            RolloutStage::GoingBack if is_over => RolloutStage::TakenBack,
            stage => stage,
        })
    }

    /// Returns the message to send now, at a time in milliseconds since 1970. Call it once a second.
    pub(super) fn message(&mut self, unix_ms: u64, now_ns: u64) -> LeaderMessage {
        let nodes = &self.status.nodes;
        if self.status.over && now_ns.saturating_sub(self.since_ns) > LOST_NS {
            self.is_done = true;
            return LeaderMessage::Remove(nodes.keys().cloned().collect());
        }
        let canaries = nodes.iter().filter(|(_, node)| node.canary);
        self.number += 1;
        let command = Command {
            rollout: self.status.rollout.clone(),
            number: self.number,
            ms: unix_ms,
            sha256: self.status.sha256.clone(),
            hold_ns: self.plan.confirm_ns,
            stage: self.status.stage,
            canaries: canaries.map(|(name, _)| name.clone()).collect(),
        };
        // Nodes read the file while they check it.
        let is_checked = self.status.stage != RolloutStage::Checking;
        LeaderMessage::Command(command, (!is_checked).then(|| self.plan.text.clone()))
    }

    fn enter(&mut self, stage: RolloutStage, now_ns: u64) {
        self.status.enter(stage);
        self.since_ns = now_ns;
    }

    /// Returns the nodes that take policies from the fleet.
    fn recipients(&self) -> impl Iterator<Item = (&Name, &RolloutNode)> {
        let nodes = self.status.nodes.iter();
        nodes.filter(|(_, node)| node.part.state != NodeState::TakesNone)
    }

    fn has_done_stage(&self, node: &RolloutNode) -> bool {
        let state = node.part.state;
        match self.status.stage {
            RolloutStage::Checking => state == NodeState::Would,
            RolloutStage::Canaries => !node.canary || state == NodeState::Holds,
            RolloutStage::Others => state == NodeState::Holds,
            RolloutStage::Keeping => matches!(state, NodeState::Kept | NodeState::Back),
            RolloutStage::GoingBack => matches!(state, NodeState::Back | NodeState::Refuses),
            _ => true,
        }
    }

    /// Checks whether the rollout can go on.
    fn check_nodes(&self, now_ns: u64) -> Result<(), String> {
        if now_ns.saturating_sub(self.queried_ns) > ABSENT_NS {
            // No operator can confirm it.
            return Err("the command that pushed it has ended".to_owned());
        }
        let is_late = now_ns.saturating_sub(self.since_ns) > SLOW_NS;
        for (name, node) in self.recipients() {
            let is_lost = now_ns.saturating_sub(node.received_ns) > LOST_NS;
            let why = node.part.why.as_deref().unwrap_or_default();
            return Err(match node.part.state {
                NodeState::Refuses => format!("node {name} refuses it: {why}"),
                NodeState::Back => format!("node {name} went back: {why}"),
                NodeState::Silent if is_lost => format!("node {name} does not answer"),
                _ if is_lost => format!("node {name} is silent"),
                _ if is_late && !self.has_done_stage(node) => {
                    format!("node {name} is not done with it in time")
                }
                _ => continue,
            });
        }
        Ok(())
    }

    /// Chooses the canaries once all nodes would take the file; returns the next stage.
    fn choose_canaries(&mut self) -> Result<RolloutStage, String> {
        if self.recipients().next().is_none() {
            return Err(
                "no node takes policies from the fleet: `fleet: {accept-policy: fleet.yaml}` has one do so"
                    .to_owned(),
            );
        }
        let nodes = &mut self.status.nodes;
        let takes = |node: &RolloutNode| node.part.state != NodeState::TakesNone;
        if self.plan.canaries.is_empty() {
            let recipients = nodes.values_mut().filter(|node| takes(node));
            let canaries = recipients.take(self.plan.canary_count);
            canaries.for_each(|node| node.canary = true);
        }
        let stranger = nodes.iter().find(|(_, node)| node.canary && !takes(node));
        if let Some((name, _)) = stranger {
            let why = format!("node {name}, a canary, takes no policies from the fleet");
            return Err(why);
        }
        Ok(if self.plan.dry_run {
            RolloutStage::Checked
        } else if nodes.values().any(|node| node.canary) {
            RolloutStage::Canaries
        } else {
            RolloutStage::Others
        })
    }
}
