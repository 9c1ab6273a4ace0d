//! The difference in the rates of answers.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::{
    change::Change,
    lines::{field, heading},
};
use crate::policy::{AnswerRates, Policy};

/// The difference in the rates of answers to the senders of refused packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AnswersDiff {
    /// The old rates; `None`: no limit answered.
    pub old: Option<AnswerRates>,
    /// The new rates; `None`: no limit answers.
    pub new: Option<AnswerRates>,
}

impl AnswersDiff {
    /// Returns the difference; `None`: there is none.
    pub(super) fn between(old: &Policy, new: &Policy) -> Option<Self> {
        let (old, new) = (old.answers_in_use(), new.answers_in_use());
        (old != new).then_some(Self { old, new })
    }
}

impl Display for AnswersDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let rates = |rates: AnswerRates| [rates.per_prefix, rates.total];
        let (old, new) = (self.old.map(rates), self.new.map(rates));
        heading(formatter, Change::of(old.as_ref(), new.as_ref()), "answers")?;
        for (index, name) in ["per-prefix", "total"].into_iter().enumerate() {
            let shown = match (old, new) {
                (Some(old), Some(new)) if old[index] == new[index] => continue,
                (Some(old), Some(new)) => format!("{} → {}", old[index], new[index]),
                (None, Some(new)) => new[index].to_string(),
                (_, None) => continue,
            };
            field(formatter, name, &shown)?;
        }
        Ok(())
    }
}
