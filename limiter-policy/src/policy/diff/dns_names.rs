//! The difference in the zones that limits tell apart, and in the public suffixes.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::change::{Change, field, heading};

/// The most names that are shown.
const MOST_SHOWN: usize = 5;

/// The difference between two lists of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamesDiff<T> {
    /// Names that only the new policy has.
    pub added: Vec<T>,
    /// Names that only the old policy has.
    pub removed: Vec<T>,
}

impl<T: Clone + Ord + Display> NamesDiff<T> {
    /// Returns the difference of sorted names; `None`: there is none.
    pub(super) fn between(old: &[T], new: &[T]) -> Option<Self> {
        let without = |these: &[T], others: &[T]| -> Vec<T> {
            let these = these.iter();
            let only = these.filter(|one| others.binary_search(one).is_err());
            only.cloned().collect()
        };
        let added = without(new, old);
        let removed = without(old, new);
        (!added.is_empty() || !removed.is_empty()).then_some(Self { added, removed })
    }

    /// Writes the difference under the name of the section.
    pub(super) fn write(&self, formatter: &mut Formatter<'_>, section: &str) -> fmt::Result {
        heading(formatter, Change::Changed, section)?;
        for (name, names) in [("added", &self.added), ("removed", &self.removed)] {
            if names.is_empty() {
                continue;
            }
            let shown = names.iter().take(MOST_SHOWN).map(T::to_string);
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = match names.len().saturating_sub(MOST_SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            field(formatter, name, &format!("{shown}{more}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Policy, diff::Diff};

    #[test]
    fn zones_that_come_and_go() {
        let policy = |zones: &[&str]| Policy {
            zones: zones.iter().map(|zone| zone.parse().unwrap()).collect(),
            public_suffixes: zones.iter().map(|zone| zone.parse().unwrap()).collect(),
            ..Policy::from(Vec::new())
        };
        let old = policy(&["a.example", "b.example"]);
        assert_eq!(Diff::between(&old, &old).zones, None);
        let new = policy(&["a.example", "c1", "c2", "c3", "c4", "c5", "c6"]);
        let shown = Diff::between(&old, &new).to_string();
        assert_eq!(
            shown,
            "changed  zones\n         added        c1, c2, c3, c4, c5 and 1 more\n         \
             removed      b.example\n\
             changed  public suffixes\n         added        c1, c2, c3, c4, c5 and 1 more\n         \
             removed      b.example\n"
        );
    }
}
