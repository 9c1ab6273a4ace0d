//! Differences between sieves.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::{
    change::{Change, joined},
    change::{detail, heading},
};
use crate::policy::{Policy, Sieve};

/// The difference of one sieve, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SieveDiff {
    /// Its name.
    pub sieve: String,
    /// The kind of change.
    pub change: Change,
    /// The old sieve; `None`: it was not there.
    pub old: Option<Sieve>,
    /// The new sieve; `None`: it is not there.
    pub new: Option<Sieve>,
    /// Whether its addresses stay: the old and the new lists have the same sizes.
    pub kept: bool,
}

impl SieveDiff {
    pub(super) fn all(old: &Policy, new: &Policy) -> Vec<Self> {
        joined(by_name(old), by_name(new))
            .filter(|(_, old, new)| old != new)
            .map(|(name, old, new)| Self {
                sieve: name.to_owned(),
                change: Change::of(old, new),
                kept: old.zip(new).is_some_and(|(old, new)| old.has_lists_of(new)),
                old: old.cloned(),
                new: new.cloned(),
            })
            .collect()
    }
}

fn by_name(policy: &Policy) -> impl Iterator<Item = (&str, &Sieve)> {
    let sieves = policy.sieves.iter();
    sieves.map(|sieve| (sieve.name.as_str(), sieve))
}

impl Display for SieveDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        heading(formatter, self.change, &format!("sieve {}", self.sieve))?;
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                detail(formatter, "ip-rep", &format!("{old} → {new}"))?;
                let fate = if self.kept {
                    "stay as they are"
                } else {
                    "begin empty: they have other sizes"
                };
                detail(formatter, "lists", fate)
            }
            (None, Some(new)) => detail(formatter, "ip-rep", &new.to_string()),
            (_, None) => detail(formatter, "lists", "are forgotten"),
        }
    }
}
