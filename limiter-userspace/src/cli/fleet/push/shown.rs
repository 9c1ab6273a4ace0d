//! Prints the progress of a rollout.

use std::{collections::BTreeMap, io::Write};

use limiter_fleet::rollout::{NodeState, RolloutStage};
use limiter_protocol::RolloutStatus;

use limiter_report::render::{duration, table};

/// The state last printed.
pub(super) struct Progress {
    /// Whether the policy is kept without a question.
    is_answered: bool,
    stage: Option<RolloutStage>,
    /// Whether the changes on each node were printed.
    has_shown: bool,
}

impl Progress {
    pub(super) const fn new(is_answered: bool) -> Self {
        Self {
            is_answered,
            stage: None,
            has_shown: false,
        }
    }

    /// Prints news.
    pub(super) fn show(
        &mut self,
        out: &mut impl Write,
        status: &RolloutStatus,
    ) -> anyhow::Result<()> {
        if self.stage.replace(status.stage) == Some(status.stage) {
            return Ok(());
        }
        let is_checking = status
            .nodes
            .values()
            .any(|node| matches!(node.part.state, NodeState::Silent | NodeState::Checking));
        if !is_checking && !self.has_shown {
            self.has_shown = true;
            show_differences(out, status)?;
        }
        match status.stage {
            RolloutStage::Checking => writeln!(out, "the nodes check it")?,
            RolloutStage::Canaries => {
                let canaries = status.nodes.iter().filter(|(_, node)| node.canary);
                let names: Vec<_> = canaries.map(|(name, _)| name.as_str()).collect();
                writeln!(out, "first: {}", names.join(", "))?;
            }
            RolloutStage::Others => writeln!(out, "then all")?,
            RolloutStage::Waiting => {
                show_nodes(out, status)?;
                if self.is_answered {
                    writeln!(out, "all nodes have it; it is kept if they hold to it")?;
                } else {
                    let left = duration(status.left_ns.unwrap_or_default());
                    writeln!(
                        out,
                        "All nodes have it. It is taken back in {left} unless you keep it, here or by \
                         `limiter fleet confirm`.\nKeep it? [y/n]"
                    )?;
                }
            }
            RolloutStage::Keeping => writeln!(out, "all nodes are told to keep it")?,
            RolloutStage::GoingBack => {
                let why = status.why.as_deref().unwrap_or_default();
                writeln!(out, "it is taken back: {why}")?;
            }
            RolloutStage::Checked
            | RolloutStage::Kept
            | RolloutStage::KeptBySome
            | RolloutStage::TakenBack => show_nodes(out, status)?,
        }
        Ok(())
    }
}

/// Prints the changes that the file makes, once for all nodes with the same changes.
fn show_differences(out: &mut impl Write, status: &RolloutStatus) -> anyhow::Result<()> {
    let mut differences = BTreeMap::<&str, Vec<&str>>::new();
    for (name, node) in &status.nodes {
        if let Some(diff) = &node.part.diff {
            differences.entry(diff).or_default().push(name.as_str());
        }
    }
    for (diff, names) in differences {
        writeln!(out, "on {} it changes:", names.join(", "))?;
        for line in diff.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn show_nodes(out: &mut impl Write, status: &RolloutStatus) -> anyhow::Result<()> {
    let header = ["node", "first", "policy", "state"];
    let rows = status.nodes.iter().map(|(name, node)| {
        let part = &node.part;
        let why = part.why.as_ref().map(|why| format!(": {why}"));
        let state = meaning(part.state).to_owned() + why.as_deref().unwrap_or_default();
        [
            name.to_string(),
            if node.canary { "yes" } else { "" }.to_owned(),
            part.generation
                .map_or_else(|| "–".to_owned(), |number| number.to_string()),
            state.replace('\n', "; "),
        ]
    });
    writeln!(out, "{}", table(header, [], rows))?;
    Ok(())
}

const fn meaning(state: NodeState) -> &'static str {
    match state {
        NodeState::Silent => "does not answer",
        NodeState::Checking => "checking",
        NodeState::TakesNone => "takes no policies from the fleet",
        NodeState::Would => "would take it",
        NodeState::Refuses => "refuses",
        NodeState::Taking => "about to take it",
        NodeState::Holds => "has it, unconfirmed",
        NodeState::Kept => "keeps it",
        NodeState::Back => "as before",
    }
}

#[cfg(test)]
mod tests {
    use limiter_fleet::rollout::{NodePart, RolloutNode};
    use serde_json::json;

    use super::*;

    /// Returns the status of a rollout with nodes in these states.
    fn status(stage: RolloutStage, nodes: &[(&str, NodePart)]) -> RolloutStatus {
        let nodes = nodes.iter().map(|(name, part)| {
            let mut node = RolloutNode::default();
            node.part = part.clone();
            ((*name).try_into().unwrap(), node)
        });
        RolloutStatus {
            rollout: "1 a".to_owned().try_into().unwrap(),
            sha256: "00".to_owned(),
            stage,
            over: false,
            why: Some("node c refuses it".to_owned()),
            left_ns: Some(20_000_000_000),
            nodes: nodes.collect(),
        }
    }

    #[test]
    fn news_are_shown_once() {
        let would = NodePart::would("limit All is new");
        let refuses = NodePart::because(NodeState::Refuses, "the guard\nsays so");
        let silent = status(RolloutStage::Checking, &[("a", NodeState::Silent.into())]);
        let nodes = [("a", would.clone()), ("b", would), ("c", refuses)];
        let (mut out, mut progress) = (Vec::new(), Progress::new(false));
        for status in [
            &silent,
            &silent,
            &status(RolloutStage::GoingBack, &nodes),
            &status(RolloutStage::TakenBack, &nodes),
        ] {
            progress.show(&mut out, status).unwrap();
        }
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "the nodes check it\n\
             on a, b it changes:\n  limit All is new\n\
             it is taken back: node c refuses it\n\
             node  first  policy  state\n\
             a            –       would take it\n\
             b            –       would take it\n\
             c            –       refuses: the guard; says so\n"
        );
    }

    #[test]
    fn the_json_has_these_fields() {
        let nodes = [("a", NodePart::in_force(NodeState::Holds, 2))];
        let status = status(RolloutStage::GoingBack, &nodes);
        let expected = json!({
            "push": "1 a", "sha256": "00", "stage": "going-back", "over": false,
            "why": "node c refuses it", "left_ns": 20_000_000_000_u64,
            "nodes": {"a": {
                "canary": false, "state": "holds", "why": null, "generation": 2, "diff": null,
            }},
        });
        assert_eq!(serde_json::to_value(&status).unwrap(), expected);
        assert_eq!(
            serde_json::from_value::<RolloutStatus>(expected).unwrap(),
            status
        );
    }

    #[test]
    fn only_an_unanswered_operator_is_asked() {
        let holds = NodePart::in_force(NodeState::Holds, 2);
        let status = status(RolloutStage::Waiting, &[("a", holds)]);
        for (is_answered, last) in [
            (true, "all nodes have it; it is kept if they hold to it\n"),
            (
                false,
                "All nodes have it. It is taken back in 20 s unless you keep it, here or by \
                 `limiter fleet confirm`.\nKeep it? [y/n]\n",
            ),
        ] {
            let mut out = Vec::new();
            Progress::new(is_answered).show(&mut out, &status).unwrap();
            let shown = String::from_utf8(out).unwrap();
            assert!(shown.ends_with(last), "{shown}");
        }
    }
}
