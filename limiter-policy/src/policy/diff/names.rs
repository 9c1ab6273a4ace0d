//! The difference in the names, of zones or servers, that limits tell apart.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::{
    change::Change,
    lines::{field, heading},
};
use crate::policy::DnsName;

/// The most names that are shown.
const MOST_SHOWN: usize = 5;

/// The difference in the names of one section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamesDiff {
    /// The section.
    #[serde(skip)]
    pub section: &'static str,
    /// The names that only the new policy has.
    pub added: Vec<DnsName>,
    /// Those that only the old one has.
    pub removed: Vec<DnsName>,
}

impl NamesDiff {
    /// Returns the difference between a section's sorted names; `None`: there is none.
    pub(super) fn between(section: &'static str, old: &[DnsName], new: &[DnsName]) -> Option<Self> {
        let without = |these: &[DnsName], others: &[DnsName]| -> Vec<DnsName> {
            let these = these.iter();
            let only = these.filter(|one| others.binary_search(one).is_err());
            only.cloned().collect()
        };
        let added = without(new, old);
        let removed = without(old, new);
        (!added.is_empty() || !removed.is_empty()).then_some(Self {
            section,
            added,
            removed,
        })
    }
}

impl Display for NamesDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        heading(formatter, Change::Changed, self.section)?;
        for (name, names) in [("added", &self.added), ("removed", &self.removed)] {
            if names.is_empty() {
                continue;
            }
            let shown = names.iter().take(MOST_SHOWN).map(DnsName::to_string);
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
    use super::*;

    #[test]
    fn names_that_come_and_go() {
        let names = |names: &[&str]| -> Vec<DnsName> {
            names.iter().map(|name| name.parse().unwrap()).collect()
        };
        let old = names(&["a.example", "b.example"]);
        assert_eq!(NamesDiff::between("zones", &old, &old), None);
        let new = names(&["a.example", "c1", "c2", "c3", "c4", "c5", "c6"]);
        let shown = NamesDiff::between("zones", &old, &new).unwrap().to_string();
        assert_eq!(
            shown,
            "changed  zones\n         added        c1, c2, c3, c4, c5 and 1 more\n         \
             removed      b.example\n"
        );
    }
}
