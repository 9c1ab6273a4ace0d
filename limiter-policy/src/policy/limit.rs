//! One limit of a policy.

use std::fmt;

use limiter_common::{
    address::Family,
    limit::{BuiltIn, Cost, IdFormat, LimitId, NameKind, NamedBy},
    owner::MOST_BITS_BESIDE_NAMES,
    strategy::{Strategy, Terms},
};
use serde::{Deserialize, Serialize};

use super::{AutomaticBan, Deny, Match, OverrideId, Queue, Reserve, named_by, serial};
use crate::text;

/// How fast a bucket refills and how much it holds, as configured.
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
    /// Returns the rate of a limit on connections, by which so many may be open at once: a burst, and a
    /// token that comes back each nanosecond.
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

/// The terms that a rate grants.
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

/// What a limit does to packets for which it has too few tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It drops them.
    #[default]
    Enforce,
    /// It counts them and lets them pass.
    Observe,
    /// It counts no packets at all.
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

/// A different rate for one id of a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// Its owners. A prefix shorter than the limit's ids gives each id in it a bucket of its own.
    pub id: OverrideId,
    /// The rate.
    pub rate: Rate,
    /// The operator's note from the file.
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
    /// The format of its owners' ids.
    #[serde(with = "serial::id_format")]
    pub id_format: IdFormat,
    /// The part of a packet's DNS question that each of these owners has a bucket for; `None`: they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_name: Option<NameKind>,
    /// What it counts.
    pub cost: Cost,
    /// The rule by which it decides, also with overrides.
    #[serde(default, skip_serializing_if = "serial::is_default")]
    pub strategy: Strategy,
    /// Which packets it counts.
    #[serde(rename = "match")]
    pub matching: Match,
    /// What it does to packets above the rate.
    pub mode: Mode,
    /// What sources must leave in its buckets, by their standing; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// What it sends back to the senders of packets that it refuses; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<Deny>,
    /// When it bans the sources it drops; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ban: Option<AutomaticBan>,
    /// How clients wait for it, if it is on connections; `None`: they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The name of the limits on connections that share one count; `None`: it has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The rate of ids without an override; `None`: only ids with an override are limited.
    pub default: Option<Rate>,
    /// If the rate is automatic, its highest value in tokens a second; then `default` is the lowest,
    /// and nothing has an override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
    /// If the fleet has the budget of each of its owners in common, among how many nodes. `None`: each host
    /// has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet_nodes: Option<u32>,
    /// The ids with a rate of their own, sorted by id.
    pub overrides: Vec<Override>,
    /// The names of the lists whose packets it does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The names of the lists whose packets it drops, among those that it counts, unless excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<String>,
    /// The name of the sieve that scores the sources of the packets that it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_rep: Option<String>,
    /// The parts of its metrics' names in Traffic Server; `None`: it has no such metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<FlatMetrics>,
}

/// Returns how many leading bits of a source of the family name a bucket of that format, if each owner has
/// one for each name of a kind or only one; `None`: something else names it, or it is not for the family.
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
    /// Returns whether two limits count the same for owners with ids of the same name: then one may
    /// count what the other does not.
    #[must_use]
    pub fn is_of_kind(&self, other: &Self) -> bool {
        self.cost == other.cost
            && self.id_format.name() == other.id_format.name()
            && self.per_name == other.per_name
    }

    /// Returns what names its owners, alone or beside a source, if that is a name; `None`: it is none.
    #[must_use]
    pub fn named_by(&self) -> Option<NamedBy> {
        named_by(self.id_format, self.per_name)
    }

    /// Returns what of a packet's DNS question names its buckets, alone or beside the source; `None`:
    /// nothing.
    #[must_use]
    pub fn name_kind(&self) -> Option<NameKind> {
        self.per_name.or(self.id_format.name_kind())
    }

    /// Returns how many leading bits of a source of the family name the bucket; `None`: something else
    /// names it, or the limit is not for the family.
    #[must_use]
    pub fn prefix_length(&self, family: Family) -> Option<u8> {
        most_bits(self.id_format, self.per_name, family)
    }

    /// Returns the interned id of the limit that it shares its count of connections with, of all `limits`:
    /// its own, or that of the first of its group.
    #[must_use]
    pub fn counted_as(&self, limits: &[Self]) -> LimitId {
        let first = limits.iter().find(|other| self.shares_count(other));
        first.map_or(self.id, |first| first.id)
    }

    /// Returns whether both are of one group, and count connections.
    #[must_use]
    pub fn shares_count(&self, other: &Self) -> bool {
        self.group.is_some()
            && self.group == other.group
            && self.counts_connections()
            && other.counts_connections()
    }
}

impl Limit {
    /// Returns a built-in limit configured only with this rate.
    #[must_use]
    pub fn of_built_in(built_in: &BuiltIn, default: Option<Rate>) -> Self {
        Self {
            name: built_in.name.to_owned(),
            id: built_in.id,
            id_format: built_in.id_format,
            per_name: None,
            cost: built_in.cost,
            strategy: Strategy::default(),
            matching: Match::default(),
            mode: Mode::default(),
            reserve: None,
            deny: None,
            ban: None,
            queue: None,
            group: None,
            default,
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
