//! The difference in the zones that limits tell apart.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::{
    change::Change,
    lines::{field, heading},
};
use crate::policy::{DnsName, Policy};

/// The most names that are shown.
const MOST_SHOWN: usize = 5;

/// The difference in the zones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZonesDiff {
    /// The zones that only the new policy has.
    pub added: Vec<DnsName>,
    /// Those that only the old one has.
    pub removed: Vec<DnsName>,
}

impl ZonesDiff {
    /// Returns the difference; `None`: there is none.
    pub(super) fn between(old: &Policy, new: &Policy) -> Option<Self> {
        // They are sorted.
        let without = |these: &[DnsName], others: &[DnsName]| -> Vec<DnsName> {
            let these = these.iter();
            let only = these.filter(|one| others.binary_search(one).is_err());
            only.cloned().collect()
        };
        let added = without(&new.zones, &old.zones);
        let removed = without(&old.zones, &new.zones);
        (!added.is_empty() || !removed.is_empty()).then_some(Self { added, removed })
    }
}

impl Display for ZonesDiff {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        heading(formatter, Change::Changed, "zones")?;
        for (name, zones) in [("added", &self.added), ("removed", &self.removed)] {
            if zones.is_empty() {
                continue;
            }
            let shown = zones.iter().take(MOST_SHOWN).map(DnsName::to_string);
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = match zones.len().saturating_sub(MOST_SHOWN) {
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
    fn zones_that_come_and_go() {
        let policy = |zones: &[&str]| Policy {
            zones: zones.iter().map(|zone| zone.parse().unwrap()).collect(),
            ..Policy::from(Vec::new())
        };
        let old = policy(&["a.example", "b.example"]);
        assert_eq!(ZonesDiff::between(&old, &old), None);
        let new = policy(&["a.example", "c1", "c2", "c3", "c4", "c5", "c6"]);
        let shown = ZonesDiff::between(&old, &new).unwrap().to_string();
        assert_eq!(
            shown,
            "changed  zones\n         added        c1, c2, c3, c4, c5 and 1 more\n         \
             removed      b.example\n"
        );
    }
}
