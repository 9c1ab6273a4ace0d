//! Differences between lists, and between the lists in use.

use ipnet::IpNet;
use serde::Serialize;

use super::change::{Change, joined};
use crate::policy::List;

/// The difference of one list, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListDiff {
    /// Its name.
    pub list: String,
    /// The kind of change.
    pub change: Change,
    /// The prefixes that only the new policy has on it.
    pub added: Vec<IpNet>,
    /// The prefixes that only the old policy has on it.
    pub removed: Vec<IpNet>,
}

/// A difference between the names of lists in one field, such as `exclude`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListNamesDiff {
    /// The old names.
    pub old: Vec<String>,
    /// The new names.
    pub new: Vec<String>,
}

/// Returns the lists that differ, sorted by name.
pub(super) fn between(old: &[List], new: &[List]) -> Vec<ListDiff> {
    joined(by_name(old), by_name(new))
        .filter_map(|(name, old, new)| ListDiff::between(name, old, new))
        .collect()
}

fn by_name(lists: &[List]) -> impl Iterator<Item = (&str, &List)> {
    lists.iter().map(|list| (list.name.as_str(), list))
}

impl ListDiff {
    /// Returns the difference; `None`: there is none.
    fn between(name: &str, old: Option<&List>, new: Option<&List>) -> Option<Self> {
        let prefixes = |of: Option<&List>| of.map_or(&[][..], |list| &list.prefixes).to_vec();
        let change = Change::of(old, new);
        let (old, new) = (prefixes(old), prefixes(new));
        (change != Change::Changed || old != new).then(|| Self {
            list: name.to_owned(),
            change,
            added: without(&new, &old),
            removed: without(&old, &new),
        })
    }
}

/// Returns the prefixes of a list that another list, sorted, does not have.
fn without(prefixes: &[IpNet], others: &[IpNet]) -> Vec<IpNet> {
    let only = |prefix: &&IpNet| others.binary_search(prefix).is_err();
    prefixes.iter().filter(only).copied().collect()
}

impl ListNamesDiff {
    /// Returns the difference; `None`: there is none.
    pub(super) fn between<T: PartialEq + ToString>(old: &[T], new: &[T]) -> Option<Self> {
        let texts = |all: &[T]| all.iter().map(ToString::to_string).collect();
        (old != new).then(|| Self {
            old: texts(old),
            new: texts(new),
        })
    }
}
