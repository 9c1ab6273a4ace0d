//! A limit's answers to the senders of refused packets.

use std::fmt;

use limiter_common::{answer::Answer, standing::Standing};
use serde::{Deserialize, Serialize};

/// A limit's answers to the senders of refused packets, by standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deny {
    /// The answer to proven sources; `None`: `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<Answer>,
    /// The answer to familiar sources; `None`: `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub familiar: Option<Answer>,
    /// The answer to fresh sources; `None`: `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<Answer>,
    /// The answer to retried sources; `None`: `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried: Option<Answer>,
    /// The answer to unknown sources; `None`: `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Answer>,
    /// The answer to sources of all other standings.
    #[serde(rename = "else")]
    pub other: Answer,
    /// One of this many refused packets gets the truncated answer.
    pub slip: u8,
}

impl Deny {
    /// Returns the same answer for all standings.
    #[must_use]
    pub const fn everybody(answer: Answer) -> Self {
        Self {
            proven: None,
            familiar: None,
            fresh: None,
            retried: None,
            unknown: None,
            other: answer,
            slip: 1,
        }
    }

    /// Returns the answer configured for a standing by name; `None`: `other` applies.
    #[must_use]
    pub const fn own_answer(&self, standing: Standing) -> Option<Answer> {
        match standing {
            Standing::Proven => self.proven,
            Standing::Familiar => self.familiar,
            Standing::Fresh => self.fresh,
            Standing::Retried => self.retried,
            Standing::Unknown => self.unknown,
        }
    }

    /// Returns the answer to sources of a standing.
    #[must_use]
    pub fn to(&self, standing: Standing) -> Answer {
        self.own_answer(standing).unwrap_or(self.other)
    }

    /// Returns whether the answer depends on the standing.
    #[must_use]
    pub fn depends_on_standing(&self) -> bool {
        let mut standings = Standing::ALL.into_iter();
        standings.any(|standing| self.to(standing) != self.other)
    }

    /// Returns whether some standing gets that answer.
    #[must_use]
    pub fn sends(&self, answer: Answer) -> bool {
        let mut standings = Standing::ALL.into_iter();
        self.other == answer || standings.any(|standing| self.to(standing) == answer)
    }
}

/// Formats the fields `deny` and `slip` as in a configuration file.
impl fmt::Display for Deny {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = Standing::ALL
            .into_iter()
            .filter_map(|standing| {
                let answer = self.own_answer(standing)?;
                Some(format!("{}: {}", standing.name(), answer.name()))
            })
            .collect();
        if named.is_empty() {
            formatter.write_str(self.other.name())?;
        } else {
            write!(
                formatter,
                "{{{}, else: {}}}",
                named.join(", "),
                self.other.name()
            )?;
        }
        if self.slip > 1 {
            write!(formatter, ", slip: {}", self.slip)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_and_stored_as_configured() {
        let check = |deny: Deny, shown: &str, json: &str| {
            assert_eq!(deny.to_string(), shown);
            assert_eq!(serde_json::to_string(&deny).unwrap(), json);
            assert_eq!(serde_json::from_str::<Deny>(json).unwrap(), deny);
        };
        check(
            Deny::everybody(Answer::Reset),
            "reset",
            r#"{"else":"reset","slip":1}"#,
        );
        let by_standing = Deny {
            unknown: Some(Answer::Truncate),
            retried: Some(Answer::Drop),
            slip: 2,
            ..Deny::everybody(Answer::Prohibited)
        };
        check(
            by_standing,
            "{retried: drop, unknown: truncate, else: prohibited}, slip: 2",
            r#"{"retried":"drop","unknown":"truncate","else":"prohibited","slip":2}"#,
        );
        assert!(by_standing.depends_on_standing());
        assert!(by_standing.sends(Answer::Truncate) && !by_standing.sends(Answer::Reset));
        assert_eq!(by_standing.to(Standing::Proven), Answer::Prohibited);
        let alike = Deny {
            unknown: Some(Answer::Reset),
            ..Deny::everybody(Answer::Reset)
        };
        assert!(!alike.depends_on_standing());
    }
}
