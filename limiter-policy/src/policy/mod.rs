//! The policy: a whole configuration of limits, validated and interned.

mod automatic_ban;
pub mod bans;
mod compile;
pub mod diff;
mod forgeable;
mod implied;
mod limit;
mod list;
mod matching;
mod names;
mod parts;
pub mod serial;
mod sieve;
mod units;
mod uses;

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::IpNet;
use limiter_common::reason::Action;
use serde::{Deserialize, Serialize};

pub use self::{
    automatic_ban::{AutomaticBan, BanMode, Escalation},
    compile::{CompileError, CompiledPolicy},
    forgeable::Forgeable,
    implied::Implied,
    limit::{FlatMetrics, Limit, Mode, Override, OverrideId, Rate, owner_id},
    list::{List, NeverBanned, Standing},
    matching::{Fragments, Match, PortRange, TcpFlags},
    names::{Names, TooManyNames},
    parts::{configured_name, part_name},
    sieve::{InvalidPercentage, Percentage, PermaBlock, PressureOf, Sieve, SieveSizes, SieveUse},
    units::{TooManyUnits, Units},
    uses::{ListUse, Overlap, Purpose},
};

/// A subscriber's number: what stands for a regId of Boulder's.
pub type SubscriberNumber = u64;

/// A whole configuration of limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The limits, in the order of their interned ids.
    pub limits: Vec<Limit>,
    /// The prefixes of each subscriber; no prefix belongs to two.
    #[serde(deserialize_with = "serial::subscribers")]
    pub subscribers: BTreeMap<SubscriberNumber, Vec<IpNet>>,
    /// The sieves, in the order of the file; a name is there once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sieves: Vec<Sieve>,
    /// What is done to malformed packets.
    pub malformed: Action,
    /// The lists, each under another name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<List>,
    /// The names of the lists of those who are never limited, blocked or banned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// The names of the lists of those who are always dropped, but for who is excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<String>,
    /// The names of the lists of those who are never banned, and limited as everybody is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never_ban: Vec<String>,
}

/// Limits without subscribers and lists; malformed packets are dropped.
impl From<Vec<Limit>> for Policy {
    fn from(limits: Vec<Limit>) -> Self {
        Self {
            limits,
            subscribers: BTreeMap::new(),
            sieves: Vec::new(),
            malformed: Action::Drop,
            lists: Vec::new(),
            exclude: Vec::new(),
            block: Vec::new(),
            never_ban: Vec::new(),
        }
    }
}

impl Policy {
    /// The same policy, its limits under the ids that their names have in `known` or get behind
    /// those; and all names then. Those `in_force` keep theirs.
    ///
    /// # Errors
    ///
    /// When its limits and those in force are too many.
    pub fn with_names(
        mut self,
        known: &Names,
        in_force: &[String],
    ) -> Result<(Self, Names), TooManyNames> {
        let current = self.limits.iter().map(|limit| &*limit.name);
        let names = known.intern_beside(current, in_force)?;
        for limit in &mut self.limits {
            limit.id = names.id(&limit.name).ok_or(TooManyNames)?;
        }
        self.limits.sort_unstable_by_key(|limit| limit.id);
        Ok((self, names))
    }

    /// How many overrides all limits have together.
    #[must_use]
    pub fn override_count(&self) -> usize {
        self.limits.iter().map(|limit| limit.overrides.len()).sum()
    }

    /// The subscriber that an address belongs to: that of the longest prefix.
    #[must_use]
    pub fn subscriber_of(&self, address: IpAddr) -> Option<SubscriberNumber> {
        self.subscribers
            .iter()
            .flat_map(|(number, prefixes)| prefixes.iter().map(move |prefix| (*number, prefix)))
            .filter(|(_, prefix)| prefix.contains(&address))
            .max_by_key(|(_, prefix)| prefix.prefix_len())
            .map(|(number, _)| number)
    }

    /// The override of a limit that holds for an address: of several prefixes the longest.
    #[must_use]
    pub fn override_of<'a>(&self, limit: &'a Limit, address: IpAddr) -> Option<&'a Override> {
        let subscriber = self.subscriber_of(address);
        limit
            .overrides
            .iter()
            .filter_map(|other| match other.id {
                OverrideId::Prefix(prefix) => prefix
                    .contains(&address)
                    .then(|| (prefix.prefix_len(), other)),
                OverrideId::Subscriber(number) => {
                    (subscriber == Some(number)).then_some((0, other))
                }
            })
            .max_by_key(|(prefix_length, _)| *prefix_length)
            .map(|(_, other)| other)
    }
}
