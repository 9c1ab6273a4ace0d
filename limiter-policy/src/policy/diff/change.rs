//! The kinds of changes, their lines as people see them, and the pairing of two policies' items by name.

use std::{
    collections::BTreeMap,
    fmt::{self, Formatter},
};

use serde::Serialize;

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Only the new policy has it.
    Added,
    /// Only the old policy has it.
    Removed,
    /// Both have it, but it differs.
    Changed,
}

impl Change {
    pub(super) const fn of<T: Copy>(old: Option<T>, new: Option<T>) -> Self {
        match (old, new) {
            (None, _) => Self::Added,
            (_, None) => Self::Removed,
            _ => Self::Changed,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

/// The difference in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ValueDiff<T> {
    /// The old value.
    pub old: T,
    /// The new value.
    pub new: T,
}

impl<T: PartialEq> ValueDiff<T> {
    /// Returns the difference; `None`: there is none.
    pub(super) fn between(old: T, new: T) -> Option<Self> {
        (old != new).then_some(Self { old, new })
    }
}

/// Pairs the items of two maps, sorted by name.
pub(super) fn joined<K: Ord, V>(
    old: impl IntoIterator<Item = (K, V)>,
    new: impl IntoIterator<Item = (K, V)>,
) -> impl Iterator<Item = (K, Option<V>, Option<V>)> {
    let mut joined = BTreeMap::<K, (Option<V>, Option<V>)>::new();
    for (name, value) in old {
        joined.entry(name).or_default().0 = Some(value);
    }
    for (name, value) in new {
        joined.entry(name).or_default().1 = Some(value);
    }
    joined
        .into_iter()
        .map(|(name, (old, new))| (name, old, new))
}

pub(super) fn heading(formatter: &mut Formatter<'_>, change: Change, subject: &str) -> fmt::Result {
    writeln!(formatter, "{:7}  {subject}", change.name())
}

pub(super) fn detail(formatter: &mut Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(formatter, "         {name:8}  {value}")
}

/// Like [`detail`], with a wider column for the names of sections.
pub(super) fn field(formatter: &mut Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(formatter, "         {name:11}  {value}")
}
