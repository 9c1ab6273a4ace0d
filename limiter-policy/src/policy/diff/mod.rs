//! The differences between two policies, and their effect on the buckets.

mod answers;
mod change;
mod discarded_state;
mod dns_cookies;
mod dns_names;
mod lines;
mod lists;
mod show;
mod sieves;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ipnet::IpNet;
use limiter_common::{
    limit::{Cost, IdFormat, NameKind},
    reason::Action,
    strategy::Strategy,
};
use serde::Serialize;

use self::change::joined;
pub use self::{
    answers::AnswersDiff,
    change::Change,
    discarded_state::{DiscardedState, discarded_state},
    dns_cookies::DnsCookiesDiff,
    dns_names::NamesDiff,
    lists::{ListDiff, ListNamesDiff},
    sieves::SieveDiff,
    standing::{KnownFate, StandingDiff},
};
use super::{
    AutomaticBan, CountedConnections, Deny, DnsName, FlatMetrics, KnownNames, Limit, Match, Mode,
    OverrideId, OwnConnections, Policy, Queue, Rate, Reserve, SubscriberNumber, SuffixRule,
    UntilKnown, serial,
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
    pub malformed: Option<MalformedDiff>,
    /// The treatment of connections that the host began; `None`: the same.
    pub own_connections: Option<OwnConnectionsDiff>,
    /// The treatment of a connection's data until its name is known; `None`: the same.
    pub until_known: Option<UntilKnownDiff>,
    /// The size and time of the table of known names; `None`: the same.
    pub known_names: Option<KnownNamesDiff>,
    /// The connections that limits count; `None`: the same.
    pub connections: Option<ConnectionsDiff>,
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
    /// The old terms; `None`: it was not there.
    pub old: Option<Terms>,
    /// The new terms; `None`: it is not there.
    pub new: Option<Terms>,
    /// The differing terms; empty if only overrides differ, or one policy lacks the limit.
    pub parts: Vec<Part>,
    /// The overrides that differ, sorted by id.
    pub overrides: Vec<OverrideDiff>,
    /// The fate of its buckets.
    pub buckets: BucketFate,
}

/// A limit's terms, without overrides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// The format of its owners' ids.
    #[serde(rename = "id", with = "serial::id_format")]
    pub id_format: IdFormat,
    /// The part of a packet's DNS question that splits each owner's bucket; `None`: an owner has one bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_name: Option<NameKind>,
    /// Its cost: the unit that it counts.
    pub cost: Cost,
    /// The rule for decisions.
    pub strategy: Strategy,
    /// The packets that it counts.
    #[serde(rename = "match")]
    pub matching: Match,
    /// The rate of ids without an override; `None`: unlimited.
    pub rate: Option<Rate>,
    /// The highest value of an automatic rate, in tokens a second; `rate` is the lowest. `None`: the rate is
    /// fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
    /// The number of nodes that share the budget; `None`: each host has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet_nodes: Option<u32>,
    /// Its effect on packets above the rate.
    pub mode: Mode,
    /// The tokens that sources must leave in its buckets, by standing; `None`: no reserve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// The answers to the senders of refused packets; `None`: it drops silently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Deny>,
    /// Its automatic bans; `None`: it never bans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ban: Option<AutomaticBan>,
    /// The queue of waiting clients; `None`: clients do not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The group of limits that share one count; `None`: it has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The sieve that scores its sources; `None`: no sieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_rep: Option<String>,
    /// The names of its metrics in Traffic Server; `None`: no such metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<FlatMetrics>,
    /// The lists with packets that it does not count.
    pub exclude: Vec<String>,
    /// The lists with packets that it drops.
    pub block: Vec<String>,
}

/// One of the [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// [`Terms::id_format`] and [`Terms::per_name`].
    Id,
    /// [`Terms::cost`].
    Cost,
    /// [`Terms::strategy`].
    Strategy,
    /// [`Terms::matching`].
    Match,
    /// [`Terms::rate`].
    Rate,
    /// A change between own and shared budgets: [`Terms::fleet_nodes`].
    Scope,
    /// The number of nodes that share the budget: [`Terms::fleet_nodes`].
    Nodes,
    /// [`Terms::mode`].
    Mode,
    /// [`Terms::reserve`].
    Reserve,
    /// [`Terms::deny`].
    Deny,
    /// [`Terms::ban`].
    Ban,
    /// [`Terms::queue`].
    Queue,
    /// [`Terms::group`].
    Group,
    /// [`Terms::ip_rep`].
    IpRep,
    /// [`Terms::metrics`].
    Metrics,
    /// [`Terms::exclude`].
    Exclude,
    /// [`Terms::block`].
    Block,
}

/// The fate of a limit's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BucketFate {
    /// They stay as they are.
    Kept,
    /// They stay. If a rate differs, the debt in tokens stays.
    DebtInTokens,
    /// They begin full: debts in another kind of token, or of other owners, are forgotten.
    Full,
    /// They begin empty of history: the old strategy's counts are forgotten.
    Anew,
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

/// The difference in the action for malformed packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MalformedDiff {
    /// The old action.
    pub old: Action,
    /// The new action.
    pub new: Action,
}

/// The difference in the treatment of TCP connections that the host began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OwnConnectionsDiff {
    /// The old value.
    pub old: OwnConnections,
    /// The new value.
    pub new: OwnConnections,
}

/// The difference in the treatment of a connection's data until its name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UntilKnownDiff {
    /// The old value.
    pub old: UntilKnown,
    /// The new value.
    pub new: UntilKnown,
}

/// The difference in the size and time of the table of known names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct KnownNamesDiff {
    /// The old settings.
    pub old: KnownNames,
    /// The new settings.
    pub new: KnownNames,
}

/// The difference in the TCP connections that limits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionsDiff {
    /// The old value.
    pub old: CountedConnections,
    /// The new value.
    pub new: CountedConnections,
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
            malformed: (old.malformed != new.malformed).then_some(MalformedDiff {
                old: old.malformed,
                new: new.malformed,
            }),
            own_connections: (old.own_connections != new.own_connections).then_some(
                OwnConnectionsDiff {
                    old: old.own_connections,
                    new: new.own_connections,
                },
            ),
            until_known: (old.until_known != new.until_known).then_some(UntilKnownDiff {
                old: old.until_known,
                new: new.until_known,
            }),
            known_names: (old.known_names != new.known_names).then_some(KnownNamesDiff {
                old: old.known_names,
                new: new.known_names,
            }),
            connections: (old.connections != new.connections).then_some(ConnectionsDiff {
                old: old.connections,
                new: new.connections,
            }),
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
            known_names,
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
            && known_names.is_none()
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
            per_name: limit.per_name,
            cost: limit.cost,
            strategy: limit.strategy,
            matching: limit.matching.clone(),
            rate: limit.default,
            ceiling: limit.ceiling,
            fleet_nodes: limit.fleet_nodes,
            mode: limit.mode,
            reserve: limit.reserve,
            deny: limit.deny,
            ban: limit.ban,
            queue: limit.queue,
            group: limit.group.clone(),
            ip_rep: limit.ip_rep.clone(),
            metrics: limit.metrics.clone(),
            exclude: limit.exclude.clone(),
            block: limit.block.clone(),
        }
    }

    fn other_than(&self, other: &Self) -> Vec<Part> {
        let parts = [
            (
                Part::Id,
                (self.id_format, self.per_name) != (other.id_format, other.per_name),
            ),
            (Part::Cost, self.cost != other.cost),
            (Part::Strategy, self.strategy != other.strategy),
            (Part::Match, self.matching != other.matching),
            (
                Part::Rate,
                (self.rate, self.ceiling) != (other.rate, other.ceiling),
            ),
            (
                Part::Scope,
                self.fleet_nodes.is_some() != other.fleet_nodes.is_some(),
            ),
            (
                Part::Nodes,
                self.fleet_nodes.is_some()
                    && other.fleet_nodes.is_some()
                    && self.fleet_nodes != other.fleet_nodes,
            ),
            (Part::Mode, self.mode != other.mode),
            (Part::Reserve, self.reserve != other.reserve),
            (Part::Deny, self.deny != other.deny),
            (Part::Ban, self.ban != other.ban),
            (Part::Queue, self.queue != other.queue),
            (Part::Group, self.group != other.group),
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
            Change::Changed if differs(Part::Id) || differs(Part::Cost) || differs(Part::Scope) => {
                Self::Full
            }
            Change::Changed if differs(Part::Strategy) => Self::Anew,
            Change::Changed
                if differs(Part::Rate) || differs(Part::Nodes) || !overrides.is_empty() =>
            {
                Self::DebtInTokens
            }
            Change::Changed => Self::Kept,
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
