//! One limit of a policy.

use std::fmt;

use limiter_common::{
    address::Family,
    key::MOST_BITS_BESIDE_NAMES,
    limit::{BuiltIn, Cost, IdFormat, KeyPart, LimitId, NameKind},
    strategy::{Strategy, Terms},
};
use serde::{Deserialize, Serialize};

use super::{AutomaticBan, Deny, Match, OverrideId, Queue, Reserve, key_part, serial};
use crate::text;

/// A bucket's rate and size, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens in a full bucket; for a window, `count`.
    pub burst: u64,
    /// Tokens added every `period_ns`, or admitted in a window of `period_ns`.
    pub count: u64,
    /// The period in nanoseconds.
    pub period_ns: u64,
}

impl Rate {
    /// Returns the rate of a limit on connections: a burst of `limit`, and a token that comes back each
    /// nanosecond.
    #[must_use]
    pub const fn of_connections(limit: u64) -> Self {
        const IN_A_SECOND: u64 = 1_000_000_000;
        Self {
            burst: limit,
            count: IN_A_SECOND,
            period_ns: IN_A_SECOND,
        }
    }

    /// Formats the rate as in a configuration file, without a burst if the strategy has none.
    #[must_use]
    pub fn shown(&self, strategy: Strategy) -> String {
        if strategy.has_burst() {
            return self.to_string();
        }
        let (count, period) = (self.count, text::period(self.period_ns));
        format!("{{count: {count}, period: {period}}}")
    }
}

/// Converts a rate to the terms that strategies compute with.
impl From<Rate> for Terms {
    fn from(rate: Rate) -> Self {
        Self {
            burst: rate.burst,
            count: rate.count,
            period_ns: rate.period_ns,
        }
    }
}

/// Formats the rate as in a configuration file, for a bucket that refills.
impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (burst, count, period) = (self.burst, self.count, text::period(self.period_ns));
        write!(
            formatter,
            "{{burst: {burst}, count: {count}, period: {period}}}"
        )
    }
}

/// A limit's effect on packets without enough tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Drops them.
    #[default]
    Enforce,
    /// Counts them and lets them pass.
    Observe,
    /// Counts no packets at all.
    Off,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Enforce, Self::Observe, Self::Off];

    /// Returns the mode's name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
            Self::Off => "off",
        }
    }
}

/// A separate rate for one id of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The keys. Within a prefix shorter than the limit's ids, each id has its own bucket.
    pub id: OverrideId,
    /// The rate.
    pub rate: Rate,
    /// The operator's comment from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// The parts of a limit's metric names in Traffic Server: `prefix.type.tag.metric`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlatMetrics {
    /// The beginning of the names.
    pub prefix: String,
    /// The part that stands for the limit.
    pub tag: String,
}

/// Formats the field as in a configuration file.
impl fmt::Display for FlatMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{prefix: {}, tag: {}}}", self.prefix, self.tag)
    }
}

/// One limit: a named rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Its name in files and output.
    pub name: String,
    /// Its interned id.
    pub id: LimitId,
    /// The format of its keys' ids.
    #[serde(with = "serial::id_format")]
    pub id_format: IdFormat,
    /// The part of a packet's DNS question that splits each key's bucket; `None`: a key has one bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_name: Option<NameKind>,
    /// Its cost: the unit that it counts.
    pub cost: Cost,
    /// The rule for decisions, also for overrides.
    #[serde(default, skip_serializing_if = "serial::is_default")]
    pub strategy: Strategy,
    /// The packets that it counts.
    #[serde(rename = "match")]
    pub matching: Match,
    /// Its effect on packets above the rate.
    pub mode: Mode,
    /// The tokens that sources must leave in its buckets, by standing; `None`: no reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// The answers to the senders of refused packets; `None`: it drops silently.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<Deny>,
    /// Its automatic bans; `None`: it never bans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ban: Option<AutomaticBan>,
    /// The queue of waiting clients, for a limit on connections; `None`: clients do not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The group of limits on connections that share one count; `None`: it has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The rate of ids without an override; `None`: only ids with an override are limited.
    pub default: Option<Rate>,
    /// The highest value of an automatic rate, in tokens a second; `default` is then the lowest, and there
    /// are no overrides. `None`: the rate is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
    /// The number of nodes that share each key's budget. `None`: each host has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_nodes: Option<u32>,
    /// The ids with their own rate, sorted by id.
    pub overrides: Vec<Override>,
    /// The names of the lists with packets that it does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The names of the lists with packets that it drops, out of the packets that it counts, unless excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<String>,
    /// The sieve that scores the sources of its packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_rep: Option<String>,
    /// The parts of its metrics' names in Traffic Server; `None`: no such metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<FlatMetrics>,
}

/// Returns the number of a source's leading bits that name a bucket in that format. Beside a name
/// (`per_name`), fewer bits have room. `None`: the source does not name the bucket, or the format excludes
/// the family.
pub(crate) fn most_bits(
    id_format: IdFormat,
    per_name: Option<NameKind>,
    family: Family,
) -> Option<u8> {
    let length = id_format.prefix_length(family)?;
    Some(match per_name {
        Some(_) => length.min(MOST_BITS_BESIDE_NAMES),
        None => length,
    })
}

impl Limit {
    /// Returns whether two limits have the same cost and kind of id. Then one may have `otherwise`, and count
    /// packets that the other does not.
    #[must_use]
    pub fn is_of_kind(&self, other: &Self) -> bool {
        self.cost == other.cost
            && self.id_format.name() == other.id_format.name()
            && self.per_name == other.per_name
    }

    /// Returns the limit without its overrides, of which there may be a million.
    pub(crate) fn without_overrides(&self) -> Self {
        Self {
            overrides: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the kind of name that identifies its keys, alone or beside a source; `None`: no name does.
    #[must_use]
    pub fn key_part(&self) -> Option<KeyPart> {
        key_part(self.id_format, self.per_name)
    }

    /// Returns the part of a packet's DNS question that names its buckets, alone or beside the source;
    /// `None`: no part.
    #[must_use]
    pub fn name_kind(&self) -> Option<NameKind> {
        self.per_name.or(self.id_format.name_kind())
    }

    /// Returns the number of a source's leading bits that name the bucket; `None`: the source does not name
    /// it, or the limit excludes the family.
    #[must_use]
    pub fn prefix_length(&self, family: Family) -> Option<u8> {
        most_bits(self.id_format, self.per_name, family)
    }

    /// Returns the interned id that holds its count of connections: the id of the first of `limits` in its
    /// group, or its own.
    #[must_use]
    pub fn counted_as(&self, limits: &[Self]) -> LimitId {
        let first = limits.iter().find(|other| self.shares_count(other));
        first.map_or(self.id, |first| first.id)
    }

    /// Returns whether both are limits on connections in one group.
    #[must_use]
    pub fn shares_count(&self, other: &Self) -> bool {
        self.group.is_some()
            && self.group == other.group
            && self.counts_connections()
            && other.counts_connections()
    }
}

impl Limit {
    /// Returns a built-in limit with this rate and no other settings.
    #[must_use]
    pub fn of_built_in(built_in: &BuiltIn, default: Option<Rate>) -> Self {
        Self {
            id: built_in.id,
            default,
            ..Self::with_name(built_in.name, built_in.id_format, built_in.cost)
        }
    }

    /// Returns a limit with the defaults of all other fields. Its interned id is 0.
    #[must_use]
    pub fn with_name(name: &str, id_format: IdFormat, cost: Cost) -> Self {
        Self {
            name: name.to_owned(),
            id: LimitId(0),
            id_format,
            per_name: None,
            cost,
            strategy: Strategy::default(),
            matching: Match::default(),
            mode: Mode::default(),
            reserve: None,
            deny: None,
            ban: None,
            queue: None,
            group: None,
            default: None,
            ceiling: None,
            fleet_nodes: None,
            overrides: Vec::new(),
            exclude: Vec::new(),
            block: Vec::new(),
            ip_rep: None,
            metrics: None,
        }
    }
}
