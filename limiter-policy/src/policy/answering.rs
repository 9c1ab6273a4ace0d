//! The answers that a policy sends: the rates, and the use of SYN cookies.

use super::{AnswerRates, Limit, Policy};

impl Policy {
    /// Returns the rates of answers; `None`: no limit answers.
    #[must_use]
    pub fn answers_in_use(&self) -> Option<AnswerRates> {
        let mut limits = self.limits.iter();
        let answers = limits.any(|limit| limit.answers().is_some());
        answers.then(|| self.answers.unwrap_or_default())
    }

    /// Returns whether any limit answers with SYN cookies.
    #[must_use]
    pub fn makes_syn_cookies(&self) -> bool {
        self.limits.iter().any(Limit::makes_syn_cookies)
    }
}
