//! What the lists of a policy say of an address or a prefix.

use std::fmt;

use ipnet::IpNet;
use limiter_common::{address::Address, limit::NumberOf};
use serde::{Deserialize, Serialize};

use crate::policy::{Limit, List, ListUse, Mode, Policy, Purpose};

/// What the lists of a policy say of an address, or of all addresses of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// The lists that have some of the addresses, in the order of the configuration.
    pub lists: Vec<ListFinding>,
    /// What is done before any limit is asked.
    pub standing: Extents,
    /// What limits do, where they do anything; in the order of their ids.
    pub limits: Vec<LimitFinding>,
}

/// A list that has some of the addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListFinding {
    /// Its name.
    pub list: String,
    /// How many of the addresses it has.
    pub extent: Extent,
    /// The first of its prefixes that has some of them.
    pub prefix: IpNet,
    /// How many more of its prefixes have some of them.
    pub more: usize,
    /// What uses it.
    pub used_by: Vec<UsedBy>,
}

/// What a limit does to those who are on lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitFinding {
    /// Its name.
    pub limit: String,
    /// `enforce` or `observe`; who is blocked by one that only observes passes.
    pub mode: String,
    /// What it does.
    #[serde(flatten)]
    pub standing: Extents,
}

/// How many of the addresses are excluded, and how many are blocked: who is both is excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// `None`: no address is excluded.
    pub excluded: Option<Extent>,
    /// `None`: no address is blocked.
    pub blocked: Option<Extent>,
}

/// How many of some addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// All of them.
    All,
    /// Some of them, and not all.
    Part,
}

/// What uses a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedBy {
    /// What for.
    pub purpose: Purpose,
    /// The name of the limit that uses it; `None`: it holds before any limit.
    pub limit: Option<String>,
}

/// The field of the configuration.
impl fmt::Display for UsedBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (purpose, limit) = (self.purpose, self.limit.as_deref());
        let list = "";
        ListUse {
            list,
            purpose,
            limit,
        }
        .fmt(formatter)
    }
}

impl Policy {
    /// What uses a list: the whole policy first, then its limits.
    #[must_use]
    pub fn uses_of(&self, list: &str) -> Vec<UsedBy> {
        let uses = self.list_uses().filter(|one| one.list == list);
        uses.map(|one| UsedBy {
            purpose: one.purpose,
            limit: one.limit.map(str::to_owned),
        })
        .collect()
    }

    /// What the lists say of an address, as a prefix of full length, or of all addresses of a
    /// prefix.
    #[must_use]
    pub fn findings(&self, asked: IpNet) -> Findings {
        let lists = self.lists.iter().filter_map(|list| {
            let having = having(list, asked);
            let [prefix, more @ ..] = having else {
                return None;
            };
            Some(ListFinding {
                list: list.name.clone(),
                extent: extent(having, asked)?,
                prefix: *prefix,
                more: more.len(),
                used_by: self.uses_of(&list.name),
            })
        });
        let limits = self.limits.iter().filter(|limit| self.counts(limit, asked));
        let limits = limits.filter_map(|limit| {
            let standing = self.extents(&limit.exclude, &limit.block, asked);
            (standing != Extents::default()).then(|| LimitFinding {
                limit: limit.name.clone(),
                mode: limit.mode.name().to_owned(),
                standing,
            })
        });
        Findings {
            lists: lists.collect(),
            standing: self.extents(&self.exclude, &self.block, asked),
            limits: limits.collect(),
        }
    }

    /// Whether the limit counts packets of some of these addresses at all.
    fn counts(&self, limit: &Limit, asked: IpNet) -> bool {
        let is_subscriber = || {
            let mut prefixes = self.subscribers.values().flatten();
            prefixes.any(|prefix| prefix.contains(&asked) || asked.contains(prefix))
        };
        limit.mode != Mode::Off
            && limit.id_format.is_for(Address::from(asked.addr()).family)
            && (limit.id_format.number() != Some(NumberOf::Subscriber) || is_subscriber())
    }

    fn extents(&self, exclude: &[String], block: &[String], asked: IpNet) -> Extents {
        let of_all = |names: &[&[String]]| {
            let lists = names.concat();
            let lists = lists.iter().filter_map(|name| self.list(name));
            let prefixes: Vec<IpNet> = lists
                .flat_map(|list| having(list, asked))
                .copied()
                .collect();
            IpNet::aggregate(&prefixes)
        };
        let excluded = extent(&of_all(&[exclude]), asked);
        let blocked = match excluded {
            None => extent(&of_all(&[block]), asked),
            // Those who are excluded are no more than some, so whoever else is blocked is, too.
            Some(Extent::Part) if of_all(&[exclude]) != of_all(&[exclude, block]) => {
                Some(Extent::Part)
            }
            Some(_) => None,
        };
        Extents { excluded, blocked }
    }
}

/// The prefixes of a list that have some of the addresses: one that has all of them, or those that
/// are parts.
fn having(list: &List, asked: IpNet) -> &[IpNet] {
    let prefixes = &list.prefixes;
    let begin = prefixes.partition_point(|prefix| prefix.broadcast() < asked.network());
    let end = prefixes.partition_point(|prefix| prefix.network() <= asked.broadcast());
    &prefixes[begin..end.max(begin)]
}

/// How many of the addresses disjoint prefixes have, each of which has some; `None`: none.
fn extent(prefixes: &[IpNet], asked: IpNet) -> Option<Extent> {
    match prefixes {
        [] => None,
        [prefix] if prefix.contains(&asked) => Some(Extent::All),
        _ => Some(Extent::Part),
    }
}

#[cfg(test)]
mod tests;
