//! The section `limits`, and checks of all limits together.

use std::{
    collections::{BTreeMap, HashMap},
    ptr,
};

use limiter_common::{
    limit::{ANSWER_LIMITS, BUILT_IN, COOKIE_LIMITS, Cost, MAX_LIMITS},
    policy::MOST_OTHERWISE,
};

use super::{
    contradictions::counts_by_server_name,
    diagnostics::Problems,
    foreign,
    limit::{self, Definition},
    limit_fields::OTHERWISE,
    nearest,
    node::Node,
    reader::{Name, Reader},
};
use crate::policy::{self, Mode};

/// The limits named in `limits` or in `overrides`.
#[derive(Default)]
pub(super) struct Limits {
    definitions: Vec<Definition>,
    /// The index of a name's definition; `None`: invalid, and already reported.
    by_name: HashMap<String, Option<LimitIndex>>,
    /// Whether the section is unreadable, so it may define any name.
    unreadable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LimitIndex(usize);

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
    /// Stands for a section that cannot be read.
    pub(super) fn unreadable() -> Self {
        Self {
            unreadable: true,
            ..Self::default()
        }
    }

    /// Reports that unreadable items may hide further limits.
    pub(super) const fn lack_some(&mut self) {
        self.unreadable = true;
    }

    /// Adds a limit of the section `selector`; `None`: invalid, and already reported.
    pub(super) fn add(
        &mut self,
        reader: &mut Reader<'_, '_>,
        name: Name<'_>,
        limit: Option<Definition>,
    ) {
        if self.contains(name.text) {
            let message = format!(
                "there is a limit '{}' already: each name has one",
                name.text
            );
            reader.error(name.at, message);
            return;
        }
        let index = limit.map(|limit| self.push(limit));
        self.by_name.insert(name.text.to_owned(), index);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LimitIndex, &Definition)> {
        self.definitions
            .iter()
            .enumerate()
            .map(|(index, limit)| (LimitIndex(index), limit))
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (LimitIndex, Definition)> {
        self.definitions
            .into_iter()
            .enumerate()
            .map(|(index, limit)| (LimitIndex(index), limit))
    }

    pub(super) fn get(&self, index: LimitIndex) -> &Definition {
        &self.definitions[index.0]
    }

    /// Returns the limit with this name. Adds a built-in limit that the section lacks. `None`: invalid, and
    /// already reported.
    pub(super) fn find(
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
                    "'{}' is one of the rates of {configured}: an override of {configured} needs a \
                     'rate' for each of them",
                    name.text
                );
                reader.error(name.at, message);
            } else if !self.unreadable {
                let message = foreign::boulder_limit(name.text)
                    .unwrap_or_else(|| nearest::unknown("limit", name.text, &self.known()));
                reader.error(name.at, message);
            }
            return None;
        };
        let index = self.push(Definition::of(limit, reader.position(name.at)));
        self.by_name.insert(name.text.to_owned(), Some(index));
        Some(index)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || limit::built_in(name).is_some()
    }

    /// Returns whether unreadable items may hide further limits.
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

    /// Reports too many limits, at the first one above the maximum.
    pub(super) fn check_number(&self, problems: &mut Problems) {
        let mut of_answers = 0;
        let mut beside = "";
        if self.definitions.iter().any(Definition::answers) {
            of_answers = ANSWER_LIMITS.len();
            beside = " beside a 'deny', which takes three";
        }
        if self.definitions.iter().any(Definition::makes_syn_cookies) {
            of_answers += COOKIE_LIMITS.len();
            beside = " beside a 'deny' with 'syn-cookie', which takes six";
        }
        let most = MAX_LIMITS as usize - of_answers;
        let parts = |limit: &Definition| limit.parts().unwrap_or(1);
        let mut total = 0;
        let mut definitions = self.definitions.iter();
        let beyond = definitions.find(|limit| {
            total += parts(limit);
            total > most
        });
        let Some(beyond) = beyond else {
            return;
        };
        let mut message = format!("too many limits, the maximum is {most}{beside}");
        let total = self.definitions.iter().map(parts).sum::<usize>();
        if total > self.definitions.len() {
            let named = self.definitions.len();
            message = format!(
                "{message}: each rate counts as one, and {named} limits have {total} rates"
            );
        }
        problems.report_at(beyond.position, message);
    }

    fn push(&mut self, limit: Definition) -> LimitIndex {
        self.definitions.push(limit);
        LimitIndex(self.definitions.len() - 1)
    }
}

/// Reports a limit with `otherwise` that has no other limits of its kind, or has a rival with `otherwise`.
pub(super) fn check_otherwise(limits: &Limits, problems: &mut Problems) {
    let all = || {
        let limits = limits.iter().map(|(_, limit)| limit);
        limits.filter(|limit| limit.mode != Mode::Off)
    };
    let mut first_of_kind = BTreeMap::new();
    for limit in all().filter(|limit| limit.matching.otherwise) {
        let (id, cost) = kind(limit);
        let matters =
            |other: &&Definition| limit.mode == Mode::Observe || other.mode == Mode::Enforce;
        let mut others = all().filter(matters);
        let is_alone =
            !others.any(|other| !other.matching.otherwise && kind(other) == (id.clone(), cost));
        if is_alone && !limits.are_incomplete() {
            let message = format!(
                "no other limit that counts has id {id} and cost {cost}: leave '{OTHERWISE}' out of {}",
                limit.name
            );
            problems.report_at(limit.position, message);
        }
        let is_by_name =
            |limit: &Definition| counts_by_server_name(&limit.matching, Some(limit.id_format));
        let mut others = all().filter(|other| kind(other) == (id.clone(), cost));
        if limit.cost == Cost::Connections
            && !is_by_name(limit)
            && let Some(other) = others.find(|other| is_by_name(other))
        {
            let message = format!(
                "{} counts what {} does not, by server name: give it `match: {{server-name: '*'}}`, too",
                limit.name, other.name
            );
            problems.report_at(limit.position, message);
        }
        if let Some(first) = first_of_kind.insert((id.clone(), cost), &limit.name) {
            let message = format!(
                "{first} and {} both count what no other limit with id {id} and cost {cost} does: \
                 leave '{OTHERWISE}' out of one",
                limit.name
            );
            problems.report_at(limit.position, message);
        } else if first_of_kind.len() > MOST_OTHERWISE {
            let message = format!(
                "{} is one too many: at most {MOST_OTHERWISE} limits have '{OTHERWISE}'",
                limit.name
            );
            problems.report_at(limit.position, message);
        }
    }
}

/// Returns the names of a limit's id and cost.
fn kind(limit: &Definition) -> (String, &'static str) {
    // Ranges of different lengths are one kind.
    let id = match limit.per_name {
        Some(name_kind) => format!("[{}, {}]", limit.id_format.name(), name_kind.name()),
        None => limit.id_format.name().to_owned(),
    };
    (id, limit.cost.name())
}

/// Reports groups with a single limit, and groups with different kinds of keys.
pub(super) fn check_groups(limits: &Limits, problems: &mut Problems) {
    let of_groups = || {
        limits
            .iter()
            .filter_map(|(_, limit)| Some((limit, limit.group.as_ref()?, limit.fields.group?)))
    };
    for (limit, group, position) in of_groups() {
        let others = |other: &Definition| !ptr::eq(other, limit);
        let mut others = of_groups().filter(|(other, name, _)| *name == group && others(other));
        let Some((other, ..)) = others.next() else {
            if limits.are_incomplete() {
                continue;
            }
            let message = format!(
                "{} is alone in the group '{group}': give it to another limit, too, or leave it out",
                limit.name
            );
            problems.report_at(position, message);
            continue;
        };
        if other.id_format != limit.id_format {
            let message = format!(
                "{} and {} share the count of the group '{group}', so both need the same id and \
                 prefix-length",
                limit.name, other.name
            );
            problems.report_at(position, message);
        }
    }
}
