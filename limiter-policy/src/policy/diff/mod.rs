//! What one policy has other than another, and what becomes of the buckets.

mod anew;
mod lists;
mod show;
mod sieves;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use limiter_common::{
    limit::{Cost, IdFormat},
    reason::Action,
    strategy::Strategy,
};
use serde::Serialize;

pub use self::{
    anew::begun_anew,
    lists::{ListDiff, ListNamesDiff},
    sieves::SieveDiff,
};
use super::{
    AutomaticBan, FlatMetrics, Limit, Match, Mode, OverrideId, Policy, Rate, SubscriberNumber,
    serial,
};

/// What a policy enforces other than the one before it. The comments of overrides do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The limits that differ, in the order of their names.
    pub limits: Vec<LimitDiff>,
    /// The subscribers that differ, in the order of their numbers.
    pub subscribers: Vec<SubscriberDiff>,
    /// The sieves that differ, in the order of their names.
    pub sieves: Vec<SieveDiff>,
    /// What is done to malformed packets; `None`: the same.
    pub malformed: Option<MalformedDiff>,
    /// The lists that differ, in the order of their names.
    pub lists: Vec<ListDiff>,
    /// Which lists exclude; `None`: the same.
    pub exclude: Option<ListNamesDiff>,
    /// Which lists block; `None`: the same.
    pub block: Option<ListNamesDiff>,
    /// Which lists are never banned; `None`: the same.
    pub never_ban: Option<ListNamesDiff>,
}

/// How something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The old policy has it not.
    Added,
    /// The new policy has it not.
    Removed,
    /// Both have it, and not the same.
    Changed,
}

/// One limit, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitDiff {
    /// Its name.
    pub limit: String,
    /// How it differs.
    pub change: Change,
    /// What it was; `None`: it was not there.
    pub old: Option<Terms>,
    /// What it is from now on; `None`: it is not there.
    pub new: Option<Terms>,
    /// Which of these differ; none if only overrides do, or one policy has it not.
    pub parts: Vec<Part>,
    /// The overrides that differ, in the order of their ids.
    pub overrides: Vec<OverrideDiff>,
    /// What becomes of its buckets.
    pub buckets: BucketFate,
}

/// What is said of a limit itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// Whose budget it is.
    #[serde(rename = "id", with = "serial::id_format")]
    pub id_format: IdFormat,
    /// What it counts.
    pub cost: Cost,
    /// By which rule it holds them to its rate.
    #[serde(with = "serial::strategy")]
    pub strategy: Strategy,
    /// Which packets it counts.
    #[serde(rename = "match")]
    pub matching: Match,
    /// The parameters of ids without an override; `None`: they are not limited.
    pub rate: Option<Rate>,
    /// What it does to packets above it.
    pub mode: Mode,
    /// When it bans those whom it drops; `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ban: Option<AutomaticBan>,
    /// The sieve that scores whom it counts; `None`: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_rep: Option<String>,
    /// The names of its metrics in Traffic Server; `None`: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<FlatMetrics>,
    /// The lists of those whose packets it does not count.
    pub exclude: Vec<String>,
    /// The lists of those whose packets it drops.
    pub block: Vec<String>,
}

/// One of the [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// [`Terms::id_format`].
    Id,
    /// [`Terms::cost`].
    Cost,
    /// [`Terms::strategy`].
    Strategy,
    /// [`Terms::matching`].
    Match,
    /// [`Terms::rate`].
    Rate,
    /// [`Terms::mode`].
    Mode,
    /// [`Terms::ban`].
    Ban,
    /// [`Terms::ip_rep`].
    IpRep,
    /// [`Terms::metrics`].
    Metrics,
    /// [`Terms::exclude`].
    Exclude,
    /// [`Terms::block`].
    Block,
}

/// What becomes of a limit's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BucketFate {
    /// Nothing.
    Kept,
    /// Where a rate differs, as many tokens are owed as before.
    DebtInTokens,
    /// Who owes what is forgotten: tokens of another kind, or of somebody else.
    Full,
    /// What was counted by another strategy is forgotten.
    Anew,
    /// They are full, unless the limit was there once and comes back.
    FullUnlessItWasThere,
    /// Nobody asks for them; they are there if the limit comes back under its name.
    SetAside,
}

/// One override of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OverrideDiff {
    /// Whom it is for.
    pub id: OverrideId,
    /// The rate it had; `None`: there was no such override.
    pub old: Option<Rate>,
    /// The rate it has; `None`: there is no such override.
    pub new: Option<Rate>,
}

/// One subscriber. Its buckets belong to its number: a prefix that comes to it spends from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubscriberDiff {
    /// Its number.
    pub subscriber: SubscriberNumber,
    /// How it differs.
    pub change: Change,
    /// The prefixes that only the new policy gives it.
    pub added: Vec<IpNet>,
    /// The prefixes that only the old policy gives it.
    pub removed: Vec<IpNet>,
}

/// What is done to malformed packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MalformedDiff {
    /// What was.
    pub old: Action,
    /// What is from now on.
    pub new: Action,
}

impl Diff {
    /// What `new` has other than `old`.
    #[must_use]
    pub fn between(old: &Policy, new: &Policy) -> Self {
        Self {
            limits: joined(by_name(old), by_name(new))
                .filter_map(|(name, old, new)| LimitDiff::between(name, old, new))
                .collect(),
            subscribers: joined(old.subscribers.iter(), new.subscribers.iter())
                .filter_map(|(number, old, new)| SubscriberDiff::between(*number, old, new))
                .collect(),
            sieves: SieveDiff::all(old, new),
            malformed: (old.malformed != new.malformed).then_some(MalformedDiff {
                old: old.malformed,
                new: new.malformed,
            }),
            lists: lists::between(&old.lists, &new.lists),
            exclude: ListNamesDiff::between(&old.exclude, &new.exclude),
            block: ListNamesDiff::between(&old.block, &new.block),
            never_ban: ListNamesDiff::between(&old.never_ban, &new.never_ban),
        }
    }

    /// Whether both enforce the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            limits,
            subscribers,
            sieves,
            malformed,
            lists,
            exclude,
            block,
            never_ban,
        } = self;
        limits.is_empty()
            && subscribers.is_empty()
            && sieves.is_empty()
            && malformed.is_none()
            && lists.is_empty()
            && exclude.is_none()
            && block.is_none()
            && never_ban.is_none()
    }
}

fn by_name(policy: &Policy) -> impl Iterator<Item = (&str, &Limit)> {
    let limits = policy.limits.iter();
    limits.map(|limit| (limit.name.as_str(), limit))
}

/// What either has under a name, in the order of the names.
fn joined<K: Ord, V>(
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

impl Change {
    const fn of<T: Copy>(old: Option<T>, new: Option<T>) -> Self {
        match (old, new) {
            (None, _) => Self::Added,
            (_, None) => Self::Removed,
            _ => Self::Changed,
        }
    }
}

impl LimitDiff {
    /// `None`: they do not differ.
    fn between(name: &str, old: Option<&Limit>, new: Option<&Limit>) -> Option<Self> {
        let change = Change::of(old, new);
        let overrides = OverrideDiff::all(old, new);
        let (old, new) = (old.map(Terms::of), new.map(Terms::of));
        let parts = match (&old, &new) {
            (Some(old), Some(new)) => old.other_than(new),
            _ => Vec::new(),
        };
        let differs = change != Change::Changed || !parts.is_empty() || !overrides.is_empty();
        differs.then(|| Self {
            limit: name.to_owned(),
            change,
            old,
            new,
            buckets: BucketFate::of(change, &parts, &overrides),
            parts,
            overrides,
        })
    }
}

impl Terms {
    fn of(limit: &Limit) -> Self {
        Self {
            id_format: limit.id_format,
            cost: limit.cost,
            strategy: limit.strategy,
            matching: limit.matching.clone(),
            rate: limit.default,
            mode: limit.mode,
            ban: limit.ban,
            ip_rep: limit.ip_rep.clone(),
            metrics: limit.metrics.clone(),
            exclude: limit.exclude.clone(),
            block: limit.block.clone(),
        }
    }

    fn other_than(&self, other: &Self) -> Vec<Part> {
        let parts = [
            (Part::Id, self.id_format != other.id_format),
            (Part::Cost, self.cost != other.cost),
            (Part::Strategy, self.strategy != other.strategy),
            (Part::Match, self.matching != other.matching),
            (Part::Rate, self.rate != other.rate),
            (Part::Mode, self.mode != other.mode),
            (Part::Ban, self.ban != other.ban),
            (Part::IpRep, self.ip_rep != other.ip_rep),
            (Part::Metrics, self.metrics != other.metrics),
            (Part::Exclude, self.exclude != other.exclude),
            (Part::Block, self.block != other.block),
        ];
        let differing = parts.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(part, _)| part).collect()
    }
}

impl BucketFate {
    fn of(change: Change, parts: &[Part], overrides: &[OverrideDiff]) -> Self {
        let differs = |part| parts.contains(&part);
        match change {
            Change::Added => Self::FullUnlessItWasThere,
            Change::Removed => Self::SetAside,
            Change::Changed if differs(Part::Id) || differs(Part::Cost) => Self::Full,
            Change::Changed if differs(Part::Strategy) => Self::Anew,
            Change::Changed if differs(Part::Rate) || !overrides.is_empty() => Self::DebtInTokens,
            Change::Changed => Self::Kept,
        }
    }
}

impl OverrideDiff {
    fn all(old: Option<&Limit>, new: Option<&Limit>) -> Vec<Self> {
        let by_id = |limit: Option<&Limit>| -> Vec<_> {
            let overrides = limit.into_iter().flat_map(|limit| &limit.overrides);
            overrides.map(|other| (other.id, other.rate)).collect()
        };
        joined(by_id(old), by_id(new))
            .filter(|(_, old, new)| old != new)
            .map(|(id, old, new)| Self { id, old, new })
            .collect()
    }
}

impl SubscriberDiff {
    /// `None`: they do not differ.
    fn between(
        subscriber: SubscriberNumber,
        old: Option<&Vec<IpNet>>,
        new: Option<&Vec<IpNet>>,
    ) -> Option<Self> {
        let prefixes = |of: Option<&Vec<IpNet>>| -> BTreeSet<IpNet> {
            of.into_iter().flatten().copied().collect()
        };
        let change = Change::of(old, new);
        let (old, new) = (prefixes(old), prefixes(new));
        (change != Change::Changed || old != new).then(|| Self {
            subscriber,
            change,
            added: new.difference(&old).copied().collect(),
            removed: old.difference(&new).copied().collect(),
        })
    }
}
