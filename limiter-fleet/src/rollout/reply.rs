//! A node's replies to the leading node.

use serde::{Deserialize, Serialize};

use super::command::RolloutId;
use crate::Name;

/// The most bytes of a text.
pub const MOST_TEXT: usize = 4096;

/// The end of a text that was cut.
const CUT: &str = "\n…";

/// A node's reply to a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The rollout.
    pub rollout: RolloutId,
    /// The node.
    pub node: Name,
    /// Rises with each reply of the node.
    pub number: u64,
    /// The node's state.
    pub state: NodeState,
    /// The wish of an operator on that node; `None`: none.
    pub wish: Option<Wish>,
}

/// An operator's wish, given on a node other than the leading one, which alone decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// That all keep it.
    Keep,
    /// That all go back.
    Back,
}

/// A node's state in a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeState {
    /// It checks the file.
    Checking,
    /// It takes no policies from the fleet.
    Declines,
    /// It would take the file, with these changes.
    Would(Box<str>),
    /// It refuses the file, with the reason.
    Refuses(Box<str>),
    /// It is about to enforce the file.
    Takes,
    /// It enforces the file, as the policy with this number, and waits for confirmation.
    Holds(u64),
    /// It keeps the file, as the policy with this number.
    Kept(u64),
    /// It enforces its earlier policy again, with the reason.
    Back(Box<str>),
}

impl NodeState {
    /// Returns whether the file is or may be in force without being kept.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Takes | Self::Holds(_))
    }

    const fn text(&self) -> Option<&str> {
        match self {
            Self::Would(text) | Self::Refuses(text) | Self::Back(text) => Some(text),
            Self::Checking | Self::Declines | Self::Takes | Self::Holds(_) | Self::Kept(_) => None,
        }
    }
}

impl Reply {
    /// Returns whether a node may have sent it: texts are printed to a terminal.
    #[must_use]
    pub fn is_right(&self) -> bool {
        let is_right = |character: char| character == '\n' || !character.is_control();
        let mut texts = self.state.text().into_iter();
        texts.all(|text| text.len() <= MOST_TEXT && text.chars().all(is_right))
    }
}

/// Returns a text fit for a reply: without control characters except line breaks, and cut to length.
#[must_use]
pub fn bounded(text: &str) -> Box<str> {
    let clean = text.trim_end().chars();
    let clean = clean.map(|character| match character {
        '\n' => '\n',
        control if control.is_control() => ' ',
        other => other,
    });
    let mut clean: String = clean.collect();
    if clean.len() > MOST_TEXT {
        clean.truncate(clean.floor_char_boundary(MOST_TEXT - CUT.len()));
        clean.push_str(CUT);
    }
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded() {
        let reply = |text: &str| Reply {
            rollout: "1 a".parse().unwrap(),
            node: "b".try_into().unwrap(),
            number: 1,
            state: NodeState::Would(text.into()),
            wish: None,
        };
        assert_eq!(&*bounded("one\n  two\u{1b}[1m\n"), "one\n  two [1m");
        let long = bounded(&"ä".repeat(MOST_TEXT));
        assert!(long.len() <= MOST_TEXT && long.ends_with("ä\n…"));
        assert!(reply(&long).is_right());
        assert!(!reply("\u{1b}[1m").is_right());
        assert!(!reply(&"x".repeat(MOST_TEXT + 1)).is_right());
    }
}
