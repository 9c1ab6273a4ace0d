//! The effect of a policy's lists on an address or a prefix, for people who ask.

use std::fmt;

use ipnet::IpNet;
use limiter_common::{address::Address, limit::KeyPart};
use serde::{Deserialize, Serialize};

use crate::policy::{Limit, List, ListUse, Mode, Policy, Purpose};

/// The effect of a policy's lists on an address, or on all addresses of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// The lists with any of the addresses, in the order of the configuration.
    pub lists: Vec<ListFinding>,
    /// The effect before any limit.
    pub listing: Extents,
    /// The effects in limits, in the order of interned ids; limits without an effect are left out.
    pub limits: Vec<LimitFinding>,
}

/// A list that contains some of the addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListFinding {
    /// Its name.
    pub list: String,
    /// Whether it contains all of the addresses.
    pub extent: Extent,
    /// Its first prefix that shares addresses.
    pub prefix: IpNet,
    /// The number of its further prefixes that share addresses.
    pub more: usize,
    /// Its uses.
    pub used_by: Vec<UseFinding>,
}

/// A limit's effect on listed addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitFinding {
    /// Its name.
    pub limit: String,
    /// Its mode, never [`Mode::Off`]; an observing limit lets blocked addresses pass.
    pub mode: Mode,
    /// The effect on the addresses.
    #[serde(flatten)]
    pub listing: Extents,
}

/// The excluded and the blocked parts of the addresses. Excluding wins over blocking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extents {
    /// The excluded part; `None`: none.
    pub excluded: Option<Extent>,
    /// The blocked part; `None`: none.
    pub blocked: Option<Extent>,
}

/// All addresses, or a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// All.
    All,
    /// Some, but not all.
    Part,
}

/// A use of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseFinding {
    /// Its purpose.
    pub purpose: Purpose,
    /// The name of the limit that uses it; `None`: it applies before any limit.
    pub limit: Option<String>,
}

/// Formats the field of the configuration.
impl fmt::Display for UseFinding {
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
    /// Returns the uses of a list: the whole policy first, then its limits.
    #[must_use]
    pub fn uses_of(&self, list: &str) -> Vec<UseFinding> {
        let uses = self.list_uses().filter(|one| one.list == list);
        uses.map(|one| UseFinding {
            purpose: one.purpose,
            limit: one.limit.map(str::to_owned),
        })
        .collect()
    }

    /// Returns the effect of the lists on an address (a prefix of full length), or on all addresses of a
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
            let listing = self.extents(&limit.exclude, &limit.block, asked);
            (listing != Extents::default()).then(|| LimitFinding {
                limit: limit.name.clone(),
                mode: limit.mode,
                listing,
            })
        });
        Findings {
            lists: lists.collect(),
            listing: self.extents(&self.exclude, &self.block, asked),
            limits: limits.collect(),
        }
    }

    /// Returns whether the limit counts packets of any of these addresses.
    fn counts(&self, limit: &Limit, asked: IpNet) -> bool {
        let is_subscriber = || {
            let mut prefixes = self.subscribers.values().flatten();
            prefixes.any(|prefix| prefix.contains(&asked) || asked.contains(prefix))
        };
        limit.mode != Mode::Off
            && limit.id_format.is_for(Address::from(asked.addr()).family)
            && (limit.id_format.key_part() != Some(KeyPart::Subscriber) || is_subscriber())
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
            // A part is excluded, so blocking can apply only to a part, too.
            Some(Extent::Part) if of_all(&[exclude]) != of_all(&[exclude, block]) => {
                Some(Extent::Part)
            }
            Some(_) => None,
        };
        Extents { excluded, blocked }
    }
}

/// Returns the prefixes of a list that share addresses with `asked`: one prefix around it, or several inside.
fn having(list: &List, asked: IpNet) -> &[IpNet] {
    let prefixes = &list.prefixes;
    let begin = prefixes.partition_point(|prefix| prefix.broadcast() < asked.network());
    let end = prefixes.partition_point(|prefix| prefix.network() <= asked.broadcast());
    &prefixes[begin..end.max(begin)]
}

/// Returns the part of the addresses that disjoint prefixes cover; `None`: they cover none.
fn extent(prefixes: &[IpNet], asked: IpNet) -> Option<Extent> {
    match prefixes {
        [] => None,
        [prefix] if prefix.contains(&asked) => Some(Extent::All),
        _ => Some(Extent::Part),
    }
}

#[cfg(test)]
mod tests;
