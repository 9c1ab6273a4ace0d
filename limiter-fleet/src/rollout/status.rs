//! The state of a rollout. Nodes exchange it, the daemon reports it, and the command line prints it.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::Name;

/// The most bytes of the texts of a node's part.
pub const MOST_TEXT: usize = 4096;

/// The end of a text that was cut.
const CUT: &str = "\n…";

/// The id of a rollout. A later rollout has a greater id, as far as clocks agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RolloutId {
    /// When the rollout began, in milliseconds since 1970, by the leading node's clock.
    pub ms: u64,
    /// The leading node.
    pub node: Name,
}

impl fmt::Display for RolloutId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.ms, self.node)
    }
}

impl From<RolloutId> for String {
    fn from(rollout: RolloutId) -> Self {
        rollout.to_string()
    }
}

impl TryFrom<String> for RolloutId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let parts = text.split_once(' ').and_then(|(ms, node)| {
            let (ms, node) = (ms.parse().ok()?, node.try_into().ok()?);
            Some(Self { ms, node })
        });
        parts.ok_or("expected a number and the name of a node")
    }
}

/// The stage of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolloutStage {
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

impl RolloutStage {
    /// Returns whether the rollout may still be kept and taken back.
    #[must_use]
    pub const fn is_undecided(self) -> bool {
        matches!(
            self,
            Self::Checking | Self::Canaries | Self::Others | Self::Waiting
        )
    }

    /// Returns whether the leading node waits for no node any more.
    const fn is_over(self) -> bool {
        matches!(
            self,
            Self::Checked | Self::Kept | Self::KeptBySome | Self::TakenBack
        )
    }

    /// Returns whether nodes must keep the file.
    pub(super) const fn keeps(self) -> bool {
        matches!(self, Self::Keeping | Self::Kept | Self::KeptBySome)
    }

    /// Returns whether nodes must not have the file.
    pub(super) const fn goes_back(self) -> bool {
        matches!(self, Self::GoingBack | Self::Checked | Self::TakenBack)
    }
}

/// A rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutStatus {
    /// Its id.
    #[serde(rename = "push")]
    pub rollout: RolloutId,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// Its stage.
    pub stage: RolloutStage,
    /// Whether it is over.
    pub over: bool,
    /// Why it is taken back; `None`: it is not.
    pub why: Option<String>,
    /// How much time is left to confirm it, in nanoseconds; `None`: it does not wait for confirmation.
    pub left_ns: Option<u64>,
    /// Its nodes, which only the leading node knows.
    pub nodes: BTreeMap<Name, RolloutNode>,
}

impl RolloutStatus {
    pub(super) const fn enter(&mut self, stage: RolloutStage) {
        (self.stage, self.over) = (stage, stage.is_over());
    }

    /// Returns the status of a rollout at a stage, without its nodes.
    pub(super) const fn new(rollout: RolloutId, sha256: String, stage: RolloutStage) -> Self {
        Self {
            rollout,
            sha256,
            stage,
            over: stage.is_over(),
            why: None,
            left_ns: None,
            nodes: BTreeMap::new(),
        }
    }
}

/// A node, as the leading node knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutNode {
    /// Whether it takes the file first.
    pub canary: bool,
    /// Its part, as it reported last.
    #[serde(flatten)]
    pub part: NodePart,
    /// The number of its last reply.
    #[serde(skip)]
    pub(super) number: u64,
    /// When its last reply arrived, or the rollout began.
    #[serde(skip)]
    pub(super) received_ns: u64,
}

/// A node's part in a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePart {
    /// Its state.
    pub state: NodeState,
    /// Why it refuses, or went back.
    pub why: Option<Box<str>>,
    /// The number of the policy there; `None`: it is not in force.
    pub generation: Option<u64>,
    /// The changes that the file would make there, as `limiter check --diff` prints them; `None`: not reported.
    pub diff: Option<Box<str>>,
}

/// A node's state in a rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// It has not replied.
    #[default]
    Silent,
    /// It checks the file.
    Checking,
    /// It takes no policies from the fleet.
    TakesNone,
    /// It would take the file.
    Would,
    /// It refuses the file.
    Refuses,
    /// It is about to enforce the file.
    Taking,
    /// It enforces the file, and waits for confirmation.
    Holds,
    /// It keeps the file.
    Kept,
    /// It enforces its earlier policy again.
    Back,
}

impl NodePart {
    /// Returns the part of a node that would take the file.
    #[must_use]
    pub fn would(diff: &str) -> Self {
        Self {
            diff: Some(bounded(diff)),
            ..NodeState::Would.into()
        }
    }

    /// Returns the part of a node with the file in force.
    #[must_use]
    pub fn in_force(state: NodeState, generation: u64) -> Self {
        Self {
            generation: Some(generation),
            ..state.into()
        }
    }

    /// Returns the part of a node that refuses the file, or went back.
    #[must_use]
    pub fn because(state: NodeState, why: &str) -> Self {
        Self {
            why: Some(bounded(why)),
            ..state.into()
        }
    }

    /// Returns whether a node may have sent it: texts are printed to a terminal.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let texts = || self.why.iter().chain(&self.diff);
        let is_right = |character: char| character == '\n' || !character.is_control();
        texts().map(|text| text.len()).sum::<usize>() <= MOST_TEXT
            && texts().all(|text| text.chars().all(is_right))
    }
}

impl From<NodeState> for NodePart {
    fn from(state: NodeState) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }
}

/// Returns a text without control characters except line breaks, cut to length.
fn bounded(text: &str) -> Box<str> {
    let clean = text.trim_end().chars();
    let clean = clean.map(|character| match character {
        control if control.is_control() && control != '\n' => ' ',
        other => other,
    });
    let mut clean: String = clean.collect();
    if clean.len() > MOST_TEXT {
        clean.truncate(clean.floor_char_boundary(MOST_TEXT - CUT.len()));
        clean.push_str(CUT);
    }
    clean.into()
}
