//! Prints the progress of a rollout.

use std::{collections::BTreeMap, io::Write};

use crate::{
    cli::render::{duration, table},
    protocol::{RolloutNode, RolloutStatus},
};

/// The state last printed.
#[derive(Default)]
pub(super) struct Progress {
    /// Whether the policy is kept without a question.
    is_answered: bool,
    stage: String,
    /// Whether the changes on each node were printed.
    has_shown: bool,
}

impl Progress {
    pub(super) fn new(is_answered: bool) -> Self {
        Self {
            is_answered,
            ..Self::default()
        }
    }

    /// Prints news.
    pub(super) fn show(
        &mut self,
        out: &mut impl Write,
        status: &RolloutStatus,
    ) -> anyhow::Result<()> {
        if status.stage == self.stage {
            return Ok(());
        }
        self.stage.clone_from(&status.stage);
        let has_checked = status
            .nodes
            .values()
            .all(|node| !matches!(node.state.as_str(), "silent" | "checking"));
        if has_checked && !self.has_shown {
            self.has_shown = true;
            show_differences(out, &status.nodes)?;
        }
        match status.stage.as_str() {
            "checking" => writeln!(out, "the nodes check it")?,
            "canaries" => {
                let canaries = status.nodes.iter().filter(|(_, node)| node.canary);
                let names: Vec<_> = canaries.map(|(name, _)| name.as_str()).collect();
                writeln!(out, "first: {}", names.join(", "))?;
            }
            "others" => writeln!(out, "then all")?,
            "waiting" => {
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
            "keeping" => writeln!(out, "all nodes are told to keep it")?,
            "going-back" => {
                let why = status.why.as_deref().unwrap_or_default();
                writeln!(out, "it is taken back: {why}")?;
            }
            _ => show_nodes(out, status)?,
        }
        Ok(())
    }
}

/// Prints the changes that the file makes, once for all nodes with the same changes.
fn show_differences(
    out: &mut impl Write,
    nodes: &BTreeMap<String, RolloutNode>,
) -> anyhow::Result<()> {
    let mut differences = BTreeMap::<&str, Vec<&str>>::new();
    for (name, node) in nodes {
        if let Some(diff) = &node.diff {
            differences.entry(diff).or_default().push(name);
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
        let first = if node.canary { "yes" } else { "" };
        let generation = node.generation;
        let why = node.why.as_ref().map(|why| format!(": {why}"));
        let state = meaning(&node.state).to_owned() + why.as_deref().unwrap_or_default();
        [
            name.clone(),
            first.to_owned(),
            generation.map_or_else(|| "–".to_owned(), |number| number.to_string()),
            state.replace('\n', "; "),
        ]
    });
    writeln!(out, "{}", table(header, [], rows))?;
    Ok(())
}

fn meaning(state: &str) -> &str {
    match state {
        "silent" => "does not answer",
        "takes-none" => "takes no policies from the fleet",
        "would" => "would take it",
        "taking" => "about to take it",
        "holds" => "has it, unconfirmed",
        "kept" => "keeps it",
        "back" => "as before",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(state: &str) -> RolloutNode {
        RolloutNode {
            canary: false,
            state: state.to_owned(),
            why: None,
            generation: None,
            diff: Some("limit All is new".to_owned()),
        }
    }

    #[test]
    fn what_is_shown() {
        let refuses = RolloutNode {
            why: Some("the guard\nsays so".to_owned()),
            diff: None,
            ..node("refuses")
        };
        let mut status = RolloutStatus {
            rollout: "1 a".to_owned(),
            sha256: "00".to_owned(),
            stage: "checking".to_owned(),
            over: false,
            why: None,
            left_ns: None,
            nodes: BTreeMap::from([("a".to_owned(), node("silent"))]),
        };
        let (mut out, mut progress) = (Vec::new(), Progress::default());
        progress.show(&mut out, &status).unwrap();
        progress.show(&mut out, &status).unwrap();
        status.stage = "going-back".to_owned();
        status.why = Some("node c refuses it".to_owned());
        status.nodes = BTreeMap::from([
            ("a".to_owned(), node("would")),
            ("b".to_owned(), node("would")),
            ("c".to_owned(), refuses),
        ]);
        progress.show(&mut out, &status).unwrap();
        status.stage = "taken-back".to_owned();
        progress.show(&mut out, &status).unwrap();
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
    fn nobody_is_asked_who_has_answered() {
        let status = RolloutStatus {
            rollout: "1 a".to_owned(),
            sha256: "00".to_owned(),
            stage: "waiting".to_owned(),
            over: false,
            why: None,
            left_ns: Some(20_000_000_000),
            nodes: BTreeMap::from([("a".to_owned(), node("holds"))]),
        };
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
