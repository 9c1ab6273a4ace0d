//! Policies that are pushed to a fleet.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A push to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushQuery {
    /// The text of the file.
    pub text: String,
    /// How many nodes take it first, unless some are named.
    pub canary_count: usize,
    /// The names of the nodes that take it first.
    pub canaries: Vec<String>,
    /// How long these hold to it before the others take it, in nanoseconds.
    pub canary_for_ns: u64,
    /// How long all wait to be confirmed, in nanoseconds.
    pub confirm_ns: u64,
    /// Whether nodes only say what it would change.
    pub dry_run: bool,
    /// Whether it is kept without a question.
    pub yes: bool,
}

/// A push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushStatus {
    /// When it began, in milliseconds since 1970, and the node: all nodes know it by that.
    pub push: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// How far it is: `checking`, `canaries`, `others`, `waiting`, `keeping`, `going-back`, or how it has
    /// ended: `checked`, `kept`, `kept-by-some`, `taken-back`. `asked`: another node pushes it, and is asked to
    /// have it kept or taken back.
    pub stage: String,
    /// Whether it is over.
    pub over: bool,
    /// Why it is taken back; `None`: it is not.
    pub why: Option<String>,
    /// How long there is still time to confirm it, in nanoseconds; `None`: it does not wait for that.
    pub left_ns: Option<u64>,
    /// The nodes, by name.
    pub nodes: BTreeMap<String, PushNode>,
}

/// A node's part in a push.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushNode {
    /// Whether it takes the file first.
    pub canary: bool,
    /// How far it is: `silent`, `checking`, `takes-none`, `would`, `refuses`, `taking`, `holds`, `kept`,
    /// `back`.
    pub state: String,
    /// Why it refuses, or went back.
    pub why: Option<String>,
    /// The number of the policy there; `None`: it is not in force.
    pub generation: Option<u64>,
    /// The change that the file makes there, as `limiter check --diff` says it; `None`: it has not said.
    pub diff: Option<String>,
}
