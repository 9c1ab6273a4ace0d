//! A push that began on this node, and its clock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::pushes::{Leader, Outcome, PushState, Seen, Stage};

use crate::protocol::{PushNode, PushStatus};

/// How long to repeat the last order after the end of a push, for nodes that were away for a moment.
const LINGERS: Duration = Duration::from_secs(15);

/// How long the pushing command may be silent.
const ABSENT: Duration = Duration::from_secs(10);

pub(in crate::daemon::fleet) struct Lead {
    pub(super) leader: Leader,
    /// The text of the file.
    pub(super) text: Arc<str>,
    pub(super) sha256: String,
    /// Whether the store has the file.
    pub(super) is_sent: bool,
    /// Whether the push is done, and removed from the store.
    pub(super) is_forgotten: bool,
    begun: Instant,
    /// When a command last queried the state.
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

    /// Advances the push. Without its command, no operator can confirm it: takes it back.
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

    /// Returns whether the push is over and no node needs its last order any more.
    pub(super) fn is_done(&self) -> bool {
        let over = self.now_ns().saturating_sub(self.leader.since_ns());
        self.leader.is_over() && Duration::from_nanos(over) > LINGERS
    }

    /// Returns the state of the push.
    pub(super) fn status(&self) -> PushStatus {
        let nodes = self.leader.nodes().iter();
        PushStatus {
            push: self.leader.push().to_string(),
            sha256: self.sha256.clone(),
            stage: stage(self.leader.stage()).to_owned(),
            over: self.leader.is_over(),
            why: self.leader.why().map(ToOwned::to_owned),
            left_ns: self.leader.left_ns(self.now_ns()),
            nodes: nodes
                .map(|(name, seen)| (name.to_string(), node(seen)))
                .collect(),
        }
    }
}

const fn stage(stage: &Stage) -> &'static str {
    match stage {
        Stage::Checking => "checking",
        Stage::Canaries => "canaries",
        Stage::Others => "others",
        Stage::Waiting => "waiting",
        Stage::Keeping => "keeping",
        Stage::GoingBack => "going-back",
        Stage::Over(Outcome::Checked) => "checked",
        Stage::Over(Outcome::Kept) => "kept",
        Stage::Over(Outcome::KeptBySome) => "kept-by-some",
        Stage::Over(Outcome::Back) => "taken-back",
    }
}

fn node(seen: &Seen) -> PushNode {
    let (state, why, generation) = match &seen.state {
        None => ("silent", None, None),
        Some(PushState::Checking) => ("checking", None, None),
        Some(PushState::Declines) => ("takes-none", None, None),
        Some(PushState::Would(_)) => ("would", None, None),
        Some(PushState::Refuses(why)) => ("refuses", Some(why), None),
        Some(PushState::Takes) => ("taking", None, None),
        Some(PushState::Holds(generation)) => ("holds", None, Some(*generation)),
        Some(PushState::Kept(generation)) => ("kept", None, Some(*generation)),
        Some(PushState::Back(why)) => ("back", Some(why), None),
    };
    PushNode {
        canary: seen.is_canary,
        state: state.to_owned(),
        why: why.map(ToString::to_string),
        generation,
        diff: seen.diff.as_deref().map(ToOwned::to_owned),
    }
}
