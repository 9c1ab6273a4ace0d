//! The leading node's part in a rollout.

use std::collections::BTreeMap;

use super::{
    command::{Command, MOST_CANARIES, Recipients, RolloutId, Step},
    reply::{NodeState, Reply, Wish},
};
use crate::Name;

const NS_PER_MS: u64 = 1_000_000;

/// How long a node may be silent before it counts as lost, in nanoseconds.
const LOST_NS: u64 = 15_000 * NS_PER_MS;

/// How long a node may take to check or enforce a file, in nanoseconds.
const SLOW_NS: u64 = 120_000 * NS_PER_MS;

/// How a file is rolled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many nodes take the file first, in the order of their names; 0: all nodes take it at once.
    pub canary_count: usize,
    /// The nodes that take the file first; empty: as many as `canary_count`.
    pub canaries: Vec<Name>,
    /// How long the canaries hold it before the other nodes take it, in milliseconds.
    pub canary_for_ms: u64,
    /// How long the rollout waits for confirmation, in milliseconds. Also how long each node holds the policy
    /// without a command of the rollout.
    pub confirm_ms: u64,
    /// Whether nodes only report the changes that the file would make.
    pub is_dry: bool,
    /// Whether the file is kept without confirmation once all nodes have held it for as long as the
    /// canaries.
    pub keeps_itself: bool,
}

/// Why a plan does not fit the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No node of the fleet is alive.
    Nobody,
    /// No node of that name is alive.
    Unknown(Name),
    /// There are too many canaries.
    TooMany,
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nobody => formatter.write_str(
                "no node has sent a heartbeat: wait some seconds, and look at `limiter fleet \
                 status`",
            ),
            Self::Unknown(node) => write!(
                formatter,
                "no node {node} sends heartbeats: look at `limiter fleet status`"
            ),
            Self::TooMany => write!(formatter, "name at most {MOST_CANARIES} canaries"),
        }
    }
}

impl std::error::Error for PlanError {}

/// The stage of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All nodes check the file.
    Checking,
    /// The canaries take the file and hold it for a while.
    Canaries,
    /// The other nodes take it.
    Others,
    /// All nodes hold it and wait for confirmation.
    Waiting,
    /// All nodes keep it.
    Keeping,
    /// All nodes go back.
    GoingBack,
    /// It is over: the nodes have reported the changes that the file would make.
    Checked,
    /// It is over: all nodes that took the file have kept it.
    Kept,
    /// It is over: some nodes have kept the file; the others went back, or their state is unknown.
    KeptBySome,
    /// It is over: no node has kept the file.
    TakenBack,
}

impl Stage {
    /// Returns its name in the status of a rollout.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checking => "checking",
            Self::Canaries => "canaries",
            Self::Others => "others",
            Self::Waiting => "waiting",
            Self::Keeping => "keeping",
            Self::GoingBack => "going-back",
            Self::Checked => "checked",
            Self::Kept => "kept",
            Self::KeptBySome => "kept-by-some",
            Self::TakenBack => "taken-back",
        }
    }

    const fn is_undecided(self) -> bool {
        matches!(
            self,
            Self::Checking | Self::Canaries | Self::Others | Self::Waiting
        )
    }
}

/// A node, as the leading node knows it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Whether it takes the file first.
    pub is_canary: bool,
    /// Its last state; `None`: it has not replied yet.
    pub state: Option<NodeState>,
    /// The changes that the file would make there; `None`: not reported.
    pub diff: Option<Box<str>>,
    /// The number of its last reply.
    number: u64,
    /// When its last reply arrived, or the rollout began.
    received_ns: u64,
}

/// A rollout, on the leading node. Times are in nanoseconds of its own clock.
#[derive(Clone, Debug)]
pub struct Leader {
    rollout: RolloutId,
    file: [u8; 32],
    plan: Plan,
    number: u64,
    stage: Stage,
    since_ns: u64,
    /// Since when all canaries hold the file.
    well_since_ns: Option<u64>,
    why: Option<String>,
    nodes: BTreeMap<Name, Target>,
}

impl Leader {
    /// Begins a rollout of the file with that SHA-256 to the live nodes.
    ///
    /// # Errors
    ///
    /// The plan does not fit them.
    pub fn new(
        rollout: RolloutId,
        file: [u8; 32],
        plan: Plan,
        alive: impl IntoIterator<Item = Name>,
        now_ns: u64,
    ) -> Result<Self, PlanError> {
        let target = |node| {
            let target = Target {
                is_canary: false,
                state: None,
                diff: None,
                number: 0,
                received_ns: now_ns,
            };
            (node, target)
        };
        let mut nodes: BTreeMap<_, _> = alive.into_iter().map(target).collect();
        if nodes.is_empty() {
            return Err(PlanError::Nobody);
        }
        let count = match plan.canaries.len() {
            0 => plan.canary_count,
            named => named,
        };
        if count > MOST_CANARIES {
            return Err(PlanError::TooMany);
        }
        for name in &plan.canaries {
            let node = nodes.get_mut(name);
            node.ok_or_else(|| PlanError::Unknown(name.clone()))?
                .is_canary = true;
        }
        Ok(Self {
            rollout,
            file,
            plan,
            number: 0,
            stage: Stage::Checking,
            since_ns: now_ns,
            well_since_ns: None,
            why: None,
            nodes,
        })
    }

    /// The id of the rollout.
    #[must_use]
    pub const fn rollout(&self) -> &RolloutId {
        &self.rollout
    }

    /// The stage of the rollout.
    #[must_use]
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// The beginning of the stage.
    #[must_use]
    pub const fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// The reason for going back; `None`: the rollout is not going back.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The nodes of the rollout.
    #[must_use]
    pub const fn nodes(&self) -> &BTreeMap<Name, Target> {
        &self.nodes
    }

    /// The time left to confirm, in nanoseconds; `None`: the rollout is not waiting for confirmation.
    #[must_use]
    pub fn left_ns(&self, now_ns: u64) -> Option<u64> {
        let until_ns = self.since_ns + self.plan.confirm_ms * NS_PER_MS;
        (self.stage == Stage::Waiting).then(|| until_ns.saturating_sub(now_ns))
    }

    /// Returns whether the rollout is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        !self.stage.is_undecided() && !matches!(self.stage, Stage::Keeping | Stage::GoingBack)
    }

    /// Handles a reply, and fulfils the wish that an operator gave on the replying node.
    pub fn receive(&mut self, reply: Reply, now_ns: u64) {
        let Some(node) = self.nodes.get_mut(&reply.node) else {
            return;
        };
        // A repeated reply does not prove that the node is alive.
        if reply.rollout != self.rollout || reply.number <= node.number {
            return;
        }
        node.number = reply.number;
        node.received_ns = now_ns;
        if let NodeState::Would(diff) = &reply.state {
            node.diff = Some(diff.clone());
        }
        node.state = Some(reply.state);
        match reply.wish {
            Some(Wish::Keep) => {
                self.keep(now_ns);
            }
            Some(Wish::Back) => {
                let why = format!("an operator on node {} has it taken back", reply.node);
                self.take_back(why, now_ns);
            }
            None => {}
        }
    }

    /// Keeps the policy, if the rollout waits for confirmation; returns whether it did.
    pub fn keep(&mut self, now_ns: u64) -> bool {
        let waits = self.stage == Stage::Waiting;
        if waits {
            self.enter(Stage::Keeping, now_ns);
        }
        waits
    }

    /// Takes the rollout back, unless it is too late; returns whether it did.
    pub fn take_back(&mut self, why: impl Into<String>, now_ns: u64) -> bool {
        let is_undecided = self.stage.is_undecided();
        if is_undecided {
            self.why = Some(why.into());
            self.enter(Stage::GoingBack, now_ns);
        }
        is_undecided
    }

    /// Advances the rollout.
    pub fn tick(&mut self, now_ns: u64) {
        if self.stage.is_undecided()
            && let Some(why) = self.problem(now_ns)
        {
            self.take_back(why, now_ns);
            return;
        }
        match self.stage {
            Stage::Checking => self.check(now_ns),
            Stage::Canaries => self.watch_canaries(now_ns),
            Stage::Others => {
                if self.recipients().all(|(_, node)| holds(node)) {
                    self.enter(Stage::Waiting, now_ns);
                }
            }
            Stage::Waiting => {
                let while_ms = self.plan.canary_for_ms.min(self.plan.confirm_ms / 2);
                if self.plan.keeps_itself && self.is_late(while_ms * NS_PER_MS, now_ns) {
                    self.keep(now_ns);
                } else if self.left_ns(now_ns) == Some(0) {
                    self.take_back("nobody has confirmed it in time", now_ns);
                }
            }
            Stage::Keeping => {
                let is_known = |node: &Target| {
                    matches!(node.state, Some(NodeState::Kept(_) | NodeState::Back(_)))
                };
                let kept = |node: &Target| matches!(node.state, Some(NodeState::Kept(_)));
                if self.recipients().all(|(_, node)| is_known(node))
                    || self.is_late(LOST_NS, now_ns)
                {
                    let stage = if self.recipients().all(|(_, node)| kept(node)) {
                        Stage::Kept
                    } else if self.recipients().any(|(_, node)| kept(node)) {
                        Stage::KeptBySome
                    } else {
                        Stage::TakenBack
                    };
                    self.enter(stage, now_ns);
                }
            }
            Stage::GoingBack => {
                let is_back = |node: &Target| {
                    matches!(
                        node.state,
                        Some(NodeState::Back(_) | NodeState::Refuses(_) | NodeState::Declines)
                    )
                };
                if self.nodes.values().all(is_back) || self.is_late(LOST_NS, now_ns) {
                    self.enter(Stage::TakenBack, now_ns);
                }
            }
            Stage::Checked | Stage::Kept | Stage::KeptBySome | Stage::TakenBack => {}
        }
    }

    /// Returns the command to send now, at a time in milliseconds since 1970.
    pub fn command(&mut self, ms: u64) -> Command {
        self.number += 1;
        let canaries = || {
            let canaries = self.nodes.iter().filter(|(_, node)| node.is_canary);
            Recipients::Some(canaries.map(|(name, _)| name.clone()).collect())
        };
        Command {
            rollout: self.rollout.clone(),
            number: self.number,
            ms,
            file: self.file,
            hold_ms: self.plan.confirm_ms,
            step: match self.stage {
                Stage::Checking => Step::Check,
                Stage::Canaries => Step::Take(canaries()),
                Stage::Others | Stage::Waiting => Step::Take(Recipients::All),
                Stage::Keeping | Stage::Kept | Stage::KeptBySome => Step::Keep,
                Stage::GoingBack | Stage::Checked | Stage::TakenBack => Step::Back,
            },
        }
    }

    fn enter(&mut self, stage: Stage, now_ns: u64) {
        self.stage = stage;
        self.since_ns = now_ns;
    }

    fn is_late(&self, ns: u64, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) > ns
    }

    /// Returns the nodes that take policies from the fleet.
    fn recipients(&self) -> impl Iterator<Item = (&Name, &Target)> {
        let declines = |node: &Target| matches!(node.state, Some(NodeState::Declines));
        self.nodes.iter().filter(move |(_, node)| !declines(node))
    }

    /// Returns the reason why the rollout cannot go on, if any.
    fn problem(&self, now_ns: u64) -> Option<String> {
        for (name, node) in self.recipients() {
            let is_lost = now_ns.saturating_sub(node.received_ns) > LOST_NS;
            let problem = match &node.state {
                Some(NodeState::Refuses(why)) => format!("refuses it: {why}"),
                Some(NodeState::Back(why)) => format!("went back: {why}"),
                None if is_lost => "does not answer".to_owned(),
                Some(_) if is_lost => "is silent".to_owned(),
                _ => continue,
            };
            return Some(format!("node {name} {problem}"));
        }
        let (slow, _) = self
            .recipients()
            .find(|(_, node)| self.is_slow(node, now_ns))?;
        Some(format!("node {slow} is not done with it in time"))
    }

    /// Returns whether a node takes too long for the current stage.
    fn is_slow(&self, node: &Target, now_ns: u64) -> bool {
        let is_at_it = match self.stage {
            Stage::Checking => matches!(node.state, Some(NodeState::Checking)),
            Stage::Canaries => node.is_canary && !holds(node),
            Stage::Others => !holds(node),
            _ => false,
        };
        is_at_it && self.is_late(SLOW_NS, now_ns)
    }

    /// Advances when all nodes have checked the file.
    fn check(&mut self, now_ns: u64) {
        let would = |node: &Target| matches!(node.state, Some(NodeState::Would(_)));
        if !self.recipients().all(|(_, node)| would(node)) {
            return;
        }
        if self.recipients().next().is_none() {
            self.take_back(
                "no node takes policies from the fleet: `fleet: {accept-policy: fleet.yaml}` has one \
                 do so",
                now_ns,
            );
            return;
        }
        if self.plan.canaries.is_empty() {
            let recipients = self.nodes.values_mut().filter(|node| would(node));
            let canaries = recipients.take(self.plan.canary_count);
            canaries.for_each(|node| node.is_canary = true);
        }
        let stranger = self
            .nodes
            .iter()
            .find(|(_, node)| node.is_canary && !would(node));
        if let Some((name, _)) = stranger {
            let why = format!("node {name}, a canary, takes no policies from the fleet");
            self.take_back(why, now_ns);
        } else if self.plan.is_dry {
            self.enter(Stage::Checked, now_ns);
        } else if self.nodes.values().any(|node| node.is_canary) {
            self.enter(Stage::Canaries, now_ns);
        } else {
            self.enter(Stage::Others, now_ns);
        }
    }

    /// Advances when all canaries have held the file for long enough.
    fn watch_canaries(&mut self, now_ns: u64) {
        let mut canaries = self.nodes.values().filter(|node| node.is_canary);
        if !canaries.all(holds) {
            return;
        }
        let since_ns = *self.well_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) >= self.plan.canary_for_ms * NS_PER_MS {
            self.enter(Stage::Others, now_ns);
        }
    }
}

const fn holds(node: &Target) -> bool {
    matches!(node.state, Some(NodeState::Holds(_)))
}
