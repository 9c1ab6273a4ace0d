//! A rollout that began on this node, and its clock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::rollout::{Leader, NodeState, Target};

use crate::protocol::{RolloutNode, RolloutStatus};

/// How long to repeat the last command after the end of a rollout, for nodes that were away for a moment.
const LINGERS: Duration = Duration::from_secs(15);

/// How long `limiter fleet push` may be silent.
const ABSENT: Duration = Duration::from_secs(10);

pub(in crate::daemon::fleet) struct Lead {
    pub(super) leader: Leader,
    /// The text of the file.
    pub(super) text: Arc<str>,
    pub(super) sha256: String,
    /// Whether the store has the file.
    pub(super) is_sent: bool,
    /// Whether the rollout is done, and removed from the store.
    pub(super) is_forgotten: bool,
    begun: Instant,
    /// When `limiter fleet push` last queried the state.
    queried: Instant,
}

impl Lead {
    /// Begins now, as does the leader's clock.
    pub(super) fn new(leader: Leader, text: Arc<str>, sha256: String) -> Self {
        let now = Instant::now();
        Self {
            leader,
            text,
            sha256,
            is_sent: false,
            is_forgotten: false,
            begun: now,
            queried: now,
        }
    }

    /// Returns the time by the leader's clock, in nanoseconds.
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Advances the rollout. Without `limiter fleet push`, no operator can confirm it: takes it back.
    pub(super) fn tick(&mut self) {
        let now_ns = self.now_ns();
        if self.queried.elapsed() > ABSENT {
            let why = "the command that pushed it has ended";
            self.leader.take_back(why, now_ns);
        }
        self.leader.tick(now_ns);
    }

    /// Records a query of the state.
    pub(super) fn query(&mut self) {
        self.queried = Instant::now();
    }

    /// Returns whether the rollout is over and no node needs its last command any more.
    pub(super) fn is_done(&self) -> bool {
        let over = self.now_ns().saturating_sub(self.leader.since_ns());
        self.leader.is_over() && Duration::from_nanos(over) > LINGERS
    }

    /// Returns the state of the rollout.
    pub(super) fn status(&self) -> RolloutStatus {
        let nodes = self.leader.nodes().iter();
        RolloutStatus {
            rollout: self.leader.rollout().to_string(),
            sha256: self.sha256.clone(),
            stage: self.leader.stage().name().to_owned(),
            over: self.leader.is_over(),
            why: self.leader.why().map(ToOwned::to_owned),
            left_ns: self.leader.left_ns(self.now_ns()),
            nodes: nodes
                .map(|(name, target)| (name.to_string(), node(target)))
                .collect(),
        }
    }
}

fn node(target: &Target) -> RolloutNode {
    let (state, why, generation) = match &target.state {
        None => ("silent", None, None),
        Some(NodeState::Checking) => ("checking", None, None),
        Some(NodeState::Declines) => ("takes-none", None, None),
        Some(NodeState::Would(_)) => ("would", None, None),
        Some(NodeState::Refuses(why)) => ("refuses", Some(why), None),
        Some(NodeState::Takes) => ("taking", None, None),
        Some(NodeState::Holds(generation)) => ("holds", None, Some(*generation)),
        Some(NodeState::Kept(generation)) => ("kept", None, Some(*generation)),
        Some(NodeState::Back(why)) => ("back", Some(why), None),
    };
    RolloutNode {
        canary: target.is_canary,
        state: state.to_owned(),
        why: why.map(ToString::to_string),
        generation,
        diff: target.diff.as_deref().map(ToOwned::to_owned),
    }
}
