//! The section `limits`: which limits there are.

use std::collections::HashMap;

use limiter_common::limit::{BUILT_IN, MAX_LIMITS};

use super::{
    diagnostics::Problems,
    limit::{self, Definition},
    nearest,
    node::Node,
    reader::{Name, Reader},
};
use crate::policy;

/// The limits that are named in `limits` or in `overrides`.
#[derive(Default)]
pub(super) struct Limits {
    definitions: Vec<Definition>,
    /// Where a name's definition is; `None`: there is something wrong with it, which was noted.
    by_name: HashMap<String, Option<LimitIndex>>,
    /// Whether the section could not be read, so that any name may be in it.
    unreadable: bool,
}

/// Which of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LimitIndex(usize);

/// Reads a map of names to limits.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Limits> {
    let entries = reader.entries(
        node,
        "a map of limit names to burst, count and period, or rate",
    )?;
    if entries.is_empty() {
        reader.error(
            node.at,
            "no limits: name at least one, or leave the section out",
        );
    }
    let mut limits = Limits::default();
    for (name, body) in entries {
        let index = limit::read(reader, name, body).map(|limit| limits.push(limit));
        limits.by_name.insert(name.text.to_owned(), index);
    }
    Some(limits)
}

impl Limits {
    /// What is known of the limits when their section cannot be read.
    pub(super) fn unreadable() -> Self {
        Self {
            unreadable: true,
            ..Self::default()
        }
    }

    /// Every limit, in the order in which they are named.
    pub(super) fn iter(&self) -> impl Iterator<Item = (LimitIndex, &Definition)> {
        self.definitions
            .iter()
            .enumerate()
            .map(|(index, limit)| (LimitIndex(index), limit))
    }

    /// Every limit, taken out.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (LimitIndex, Definition)> {
        self.definitions
            .into_iter()
            .enumerate()
            .map(|(index, limit)| (LimitIndex(index), limit))
    }

    /// A limit.
    pub(super) fn get(&self, index: LimitIndex) -> &Definition {
        &self.definitions[index.0]
    }

    /// The limit of that name, which need not be in the section if it is built in; `None`:
    /// something is wrong with it, and has been noted.
    pub(super) fn named(
        &mut self,
        reader: &mut Reader<'_, '_>,
        name: Name<'_>,
    ) -> Option<LimitIndex> {
        if let Some(index) = self.by_name.get(name.text) {
            return *index;
        }
        let Some(limit) = limit::built_in(name.text) else {
            let configured = policy::configured_name(name.text);
            if configured != name.text && self.contains(configured) {
                let message = format!(
                    "'{}' is one of the rates of {configured}: an override of {configured} has a \
                     'rate' for each of them",
                    name.text
                );
                reader.error(name.at, message);
            } else if !self.unreadable {
                let known = self.known();
                reader.error(name.at, nearest::unknown("limit", name.text, &known));
            }
            return None;
        };
        let index = self.push(Definition::of(limit, reader.place(name.at)));
        self.by_name.insert(name.text.to_owned(), Some(index));
        Some(index)
    }

    /// Whether there is a limit of that name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || limit::built_in(name).is_some()
    }

    /// Whether there may be others, in what could not be read.
    pub(super) fn are_incomplete(&self) -> bool {
        self.unreadable || self.by_name.values().any(Option::is_none)
    }

    fn known(&self) -> Vec<&str> {
        let own = self.definitions.iter().map(|limit| limit.name.as_str());
        BUILT_IN
            .iter()
            .map(|limit| limit.name)
            .chain(own.filter(|name| limit::built_in(name).is_none()))
            .collect()
    }

    /// Notes that they are too many, at the first that does not fit.
    pub(super) fn check_number(&self, problems: &mut Problems) {
        let parts = |limit: &Definition| limit.parts().unwrap_or(1);
        let mut total = 0;
        let mut definitions = self.definitions.iter();
        let beyond = definitions.find(|limit| {
            total += parts(limit);
            total > MAX_LIMITS as usize
        });
        let Some(beyond) = beyond else {
            return;
        };
        let mut message = format!("too many limits, at most {MAX_LIMITS} fit");
        let total = self.definitions.iter().map(parts).sum::<usize>();
        if total > self.definitions.len() {
            let named = self.definitions.len();
            message = format!("{message}: the rates of {named} make {total}, each rate one");
        }
        problems.note_at(beyond.place, message);
    }

    fn push(&mut self, limit: Definition) -> LimitIndex {
        self.definitions.push(limit);
        LimitIndex(self.definitions.len() - 1)
    }
}
