//! What lists have other than before, and which lists are used.

use ipnet::IpNet;
use serde::Serialize;

use super::{Change, joined};
use crate::policy::List;

/// One list, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListDiff {
    /// Its name.
    pub list: String,
    /// How it differs.
    pub change: Change,
    /// The prefixes that only the new policy has on it.
    pub added: Vec<IpNet>,
    /// The prefixes that only the old policy has on it.
    pub removed: Vec<IpNet>,
}

/// The names of the lists that exclude, or of those that block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListNamesDiff {
    /// Those that did.
    pub old: Vec<String>,
    /// Those that do from now on.
    pub new: Vec<String>,
}

/// The lists that differ, in the order of their names.
pub(super) fn between(old: &[List], new: &[List]) -> Vec<ListDiff> {
    joined(by_name(old), by_name(new))
        .filter_map(|(name, old, new)| ListDiff::between(name, old, new))
        .collect()
}

fn by_name(lists: &[List]) -> impl Iterator<Item = (&str, &List)> {
    lists.iter().map(|list| (list.name.as_str(), list))
}

impl ListDiff {
    /// `None`: they do not differ.
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

/// The prefixes of a list that another, in order, has not.
fn without(prefixes: &[IpNet], others: &[IpNet]) -> Vec<IpNet> {
    let only = |prefix: &&IpNet| others.binary_search(prefix).is_err();
    prefixes.iter().filter(only).copied().collect()
}

impl ListNamesDiff {
    /// `None`: they do not differ.
    pub(super) fn between(old: &[String], new: &[String]) -> Option<Self> {
        (old != new).then(|| Self {
            old: old.to_vec(),
            new: new.to_vec(),
        })
    }
}
