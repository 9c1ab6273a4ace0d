//! The rates of answers, and the limits that send answers.

use std::fmt;

use limiter_common::answer::Answer;
use serde::{Deserialize, Serialize};

use super::{Deny, Limit, Mode, Rate};

/// The rates of answers to the senders of refused packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRates {
    /// The rate to each IPv4 /24 and each IPv6 /48.
    pub per_prefix: Rate,
    /// The rate from each interface.
    pub total: Rate,
}

impl Default for AnswerRates {
    fn default() -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        let in_a_second = |burst, count| Rate {
            burst,
            count,
            period_ns: SECOND_NS,
        };
        Self {
            per_prefix: in_a_second(100, 100),
            total: in_a_second(100_000, 1_000_000),
        }
    }
}

/// Formats the section as in a configuration file.
impl fmt::Display for AnswerRates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_prefix, total } = self;
        write!(formatter, "{{per-prefix: {per_prefix}, total: {total}}}")
    }
}

impl Limit {
    /// Returns the answers to refused packets; `None`: the limit drops silently, or does not enforce.
    #[must_use]
    pub fn answers(&self) -> Option<Deny> {
        self.deny.filter(|_| self.mode == Mode::Enforce)
    }

    /// Returns whether it answers with SYN cookies.
    #[must_use]
    pub fn makes_syn_cookies(&self) -> bool {
        self.answers()
            .is_some_and(|deny| deny.sends(Answer::SynCookie))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_as_configured() {
        assert_eq!(
            AnswerRates::default().to_string(),
            "{per-prefix: {burst: 100, count: 100, period: 1s}, total: {burst: 100000, count: \
             1000000, period: 1s}}"
        );
    }
}
