//! The differences between two policies, and their effect on the buckets.

mod answers;
mod change;
mod discarded_state;
mod dns_names;
mod fields;
mod lists;
mod show;
mod sieves;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ipnet::IpNet;
use limiter_common::reason::Action;
use serde::Serialize;

pub use self::{
    answers::{AnswersDiff, DnsCookiesDiff},
    change::{Change, ValueDiff},
    discarded_state::{DiscardedState, discarded_state},
    dns_names::NamesDiff,
    lists::{ListDiff, ListNamesDiff},
    sieves::SieveDiff,
    standing::{KnownFate, StandingDiff},
};
use self::{
    change::joined,
    fields::{FIELDS, Field},
};
use super::{
    CachedNames, CountedConnections, DnsName, Limit, OverrideId, OwnConnections, Policy, Rate,
    SubscriberNumber, SuffixRule, UntilKnown,
};

/// The differences that change decisions. Comments of overrides do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The limits that differ, sorted by name.
    pub limits: Vec<LimitDiff>,
    /// The subscribers that differ, sorted by number.
    pub subscribers: Vec<SubscriberDiff>,
    /// The sieves that differ, sorted by name.
    pub sieves: Vec<SieveDiff>,
    /// The action for malformed packets; `None`: the same.
    pub malformed: Option<ValueDiff<Action>>,
    /// The treatment of connections that the host began; `None`: the same.
    pub own_connections: Option<ValueDiff<OwnConnections>>,
    /// The treatment of a connection's data until its name is known; `None`: the same.
    pub until_known: Option<ValueDiff<UntilKnown>>,
    /// The size and time of the table of cached names; `None`: the same.
    #[serde(rename = "known_names")]
    pub cached_names: Option<ValueDiff<CachedNames>>,
    /// The connections that limits count; `None`: the same.
    pub connections: Option<ValueDiff<CountedConnections>>,
    /// The lists that differ, sorted by name.
    pub lists: Vec<ListDiff>,
    /// The lists that exclude; `None`: the same.
    pub exclude: Option<ListNamesDiff>,
    /// The lists that block; `None`: the same.
    pub block: Option<ListNamesDiff>,
    /// The lists with addresses that are never banned; `None`: the same.
    pub never_ban: Option<ListNamesDiff>,
    /// The prefixes of NAT64 translators; `None`: the same.
    pub nat64: Option<ListNamesDiff>,
    /// The rules for standing; `None`: the same.
    pub standing: Option<StandingDiff>,
    /// The rates of answers; `None`: the same.
    pub answers: Option<AnswersDiff>,
    /// The DNS cookies that prove sources; `None`: the same.
    pub dns_cookies: Option<DnsCookiesDiff>,
    /// The zones that limits tell apart; `None`: the same.
    pub zones: Option<NamesDiff<DnsName>>,
    /// The public suffixes that divide names into domains; `None`: the same.
    pub public_suffixes: Option<NamesDiff<SuffixRule>>,
    /// The server names that limits tell apart; `None`: the same.
    pub server_names: Option<NamesDiff<DnsName>>,
}

/// The difference of one limit, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LimitDiff {
    /// Its name.
    pub limit: String,
    /// The kind of change.
    pub change: Change,
    /// The old limit without its overrides; `None`: it was not there.
    pub old: Option<Limit>,
    /// The new limit without its overrides; `None`: it is not there.
    pub new: Option<Limit>,
    /// The names of the differing fields; empty if only overrides differ, or one policy lacks the limit.
    pub parts: Vec<&'static str>,
    /// The overrides that differ, sorted by id.
    pub overrides: Vec<OverrideDiff>,
    /// The fate of its buckets.
    pub buckets: BucketFate,
}

/// The fate of a limit's buckets.
///
/// Of several changed fields, the one with the greatest effect decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BucketFate {
    /// They stay as they are.
    Kept,
    /// They stay. If a rate differs, the debt in tokens stays.
    DebtInTokens,
    /// They begin empty of history: the old strategy's counts are forgotten.
    Anew,
    /// They begin full: debts in another kind of token, or of other keys, are forgotten.
    Full,
    /// They begin full, unless an earlier policy had the limit.
    FullUnlessItWasThere,
    /// They are unused, but return with the limit's name.
    SetAside,
}

/// The difference of one override of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OverrideDiff {
    /// Its id.
    pub id: OverrideId,
    /// The old rate; `None`: there was no such override.
    pub old: Option<Rate>,
    /// The new rate; `None`: there is no such override.
    pub new: Option<Rate>,
}

/// The difference of one subscriber. Buckets belong to its number, so a prefix added to it spends from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubscriberDiff {
    /// Its number.
    pub subscriber: SubscriberNumber,
    /// The kind of change.
    pub change: Change,
    /// The prefixes that only the new policy gives it.
    pub added: Vec<IpNet>,
    /// The prefixes that only the old policy gives it.
    pub removed: Vec<IpNet>,
}

impl Diff {
    /// Returns the differences from `old` to `new`.
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
            malformed: ValueDiff::between(old.malformed, new.malformed),
            own_connections: ValueDiff::between(old.own_connections, new.own_connections),
            until_known: ValueDiff::between(old.until_known, new.until_known),
            cached_names: ValueDiff::between(old.cached_names, new.cached_names),
            connections: ValueDiff::between(old.connections, new.connections),
            lists: lists::between(&old.lists, &new.lists),
            exclude: ListNamesDiff::between(&old.exclude, &new.exclude),
            block: ListNamesDiff::between(&old.block, &new.block),
            never_ban: ListNamesDiff::between(&old.never_ban, &new.never_ban),
            nat64: ListNamesDiff::between(&old.nat64, &new.nat64),
            standing: StandingDiff::between(old, new),
            answers: AnswersDiff::between(old, new),
            dns_cookies: DnsCookiesDiff::between(old, new),
            zones: NamesDiff::between(&old.zones, &new.zones),
            public_suffixes: NamesDiff::between(&old.public_suffixes, &new.public_suffixes),
            server_names: NamesDiff::between(&old.server_names, &new.server_names),
        }
    }

    /// Returns whether both policies make the same decisions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            limits,
            subscribers,
            sieves,
            malformed,
            own_connections,
            until_known,
            cached_names,
            connections,
            lists,
            exclude,
            block,
            never_ban,
            nat64,
            standing,
            answers,
            dns_cookies,
            zones,
            public_suffixes,
            server_names,
        } = self;
        limits.is_empty()
            && subscribers.is_empty()
            && sieves.is_empty()
            && malformed.is_none()
            && own_connections.is_none()
            && until_known.is_none()
            && cached_names.is_none()
            && connections.is_none()
            && lists.is_empty()
            && exclude.is_none()
            && block.is_none()
            && never_ban.is_none()
            && nat64.is_none()
            && standing.is_none()
            && answers.is_none()
            && dns_cookies.is_none()
            && zones.is_none()
            && public_suffixes.is_none()
            && server_names.is_none()
    }
}

fn by_name(policy: &Policy) -> impl Iterator<Item = (&str, &Limit)> {
    let limits = policy.limits.iter();
    limits.map(|limit| (limit.name.as_str(), limit))
}

impl LimitDiff {
    /// Returns the difference; `None`: there is none.
    fn between(name: &str, old: Option<&Limit>, new: Option<&Limit>) -> Option<Self> {
        let change = Change::of(old, new);
        let overrides = OverrideDiff::all(old, new);
        let fields = match (old, new) {
            (Some(old), Some(new)) => {
                let fields = FIELDS.iter();
                fields.filter(|field| (field.differs)(old, new)).collect()
            }
            _ => Vec::new(),
        };
        let differs = change != Change::Changed || !fields.is_empty() || !overrides.is_empty();
        differs.then(|| Self {
            limit: name.to_owned(),
            change,
            old: old.map(Limit::without_overrides),
            new: new.map(Limit::without_overrides),
            buckets: BucketFate::of(change, &fields, &overrides),
            parts: fields.into_iter().map(|field| field.name).collect(),
            overrides,
        })
    }
}

impl BucketFate {
    fn of(change: Change, fields: &[&Field], overrides: &[OverrideDiff]) -> Self {
        match change {
            Change::Added => Self::FullUnlessItWasThere,
            Change::Removed => Self::SetAside,
            Change::Changed => {
                let of_overrides = (!overrides.is_empty()).then_some(Self::DebtInTokens);
                let fates = fields.iter().map(|field| field.buckets);
                fates.chain(of_overrides).max().unwrap_or(Self::Kept)
            }
        }
    }
}

impl OverrideDiff {
    fn all(old: Option<&Limit>, new: Option<&Limit>) -> Vec<Self> {
        let by_id = |limit: Option<&Limit>| -> Vec<_> {
            let overrides = limit.into_iter().flat_map(|limit| &limit.overrides);
            overrides
                .map(|other| (other.id.clone(), other.rate))
                .collect()
        };
        joined(by_id(old), by_id(new))
            .filter(|(_, old, new)| old != new)
            .map(|(id, old, new)| Self { id, old, new })
            .collect()
    }
}

impl SubscriberDiff {
    /// Returns the difference; `None`: there is none.
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
