//! Lists: named sets of addresses, and what a policy says about their addresses.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Limit, Policy};
use crate::text;

/// A named set of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Its name in files and output.
    pub name: String,
    /// The fewest prefixes that cover its addresses, sorted and disjoint.
    pub prefixes: Vec<IpNet>,
}

impl List {
    /// Returns the list of these prefixes' addresses. They may overlap.
    #[must_use]
    pub fn new(name: String, prefixes: &Vec<IpNet>) -> Self {
        Self {
            name,
            prefixes: IpNet::aggregate(prefixes),
        }
    }

    /// Returns the list's prefix with this address; `None`: it is not on the list.
    #[must_use]
    pub fn prefix_of(&self, address: IpAddr) -> Option<IpNet> {
        let behind = self
            .prefixes
            .partition_point(|prefix| prefix.network() <= address);
        let prefix = self.prefixes.get(behind.checked_sub(1)?)?;
        prefix.contains(&address).then_some(*prefix)
    }

    /// Returns the list's first prefix that has addresses in common with another prefix.
    #[must_use]
    pub fn meeting(&self, other: IpNet) -> Option<IpNet> {
        // They are disjoint: only the last one that begins before `other` may contain it.
        let behind = self
            .prefixes
            .partition_point(|prefix| prefix.network() < other.network());
        let around = behind.checked_sub(1).and_then(|at| self.prefixes.get(at));
        let around = around.filter(|prefix| prefix.contains(&other));
        let within = || self.prefixes.get(behind);
        let first = around.or_else(within)?;
        (first.contains(&other) || other.contains(first)).then_some(*first)
    }
}

/// A prefix that no limit bans, and an operator only by force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverBanned {
    /// The list's name.
    list: String,
    /// The prefix that was asked for.
    asked: IpNet,
    /// The list's prefix with some of its addresses.
    listed: IpNet,
}

/// Says why.
impl fmt::Display for NeverBanned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            list,
            asked,
            listed,
        } = self;
        if listed.contains(asked) {
            write!(formatter, "it is")?;
        } else {
            write!(formatter, "{} in it is", text::short(*listed))?;
        }
        write!(formatter, " on the list {list}, under `never-ban`")
    }
}

/// What the lists of a policy, or of one limit, say about an address. An excluded address is not
/// blocked, whatever lists block it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing<'p> {
    /// The lists that exclude the address, in the order of the configuration.
    pub excluded_by: Vec<&'p List>,
    /// The lists that block it, likewise.
    pub blocked_by: Vec<&'p List>,
}

impl Listing<'_> {
    /// Returns whether the address is always dropped here.
    #[must_use]
    pub const fn is_blocked(&self) -> bool {
        self.excluded_by.is_empty() && !self.blocked_by.is_empty()
    }
}

impl Policy {
    /// Returns the list with this name.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<&List> {
        self.lists.iter().find(|list| list.name == name)
    }

    /// Returns what the lists say about an address before any limit.
    #[must_use]
    pub fn listing_of(&self, address: IpAddr) -> Listing<'_> {
        self.listing(&self.exclude, &self.block, address)
    }

    /// Returns the first list under `never-ban` with some of a prefix's addresses; `None`: none.
    #[must_use]
    pub fn never_banned(&self, asked: IpNet) -> Option<NeverBanned> {
        let mut lists = self.never_ban.iter().filter_map(|name| self.list(name));
        lists.find_map(|list| {
            let listed = list.meeting(asked)?;
            Some(NeverBanned {
                list: list.name.clone(),
                asked,
                listed,
            })
        })
    }

    /// Returns what the lists that a limit names say about an address. It applies only if
    /// [`Self::listing_of`] says nothing and the address is not banned; a block, only to packets
    /// that the limit counts.
    #[must_use]
    pub fn listing_with(&self, limit: &Limit, address: IpAddr) -> Listing<'_> {
        self.listing(&limit.exclude, &limit.block, address)
    }

    fn listing(&self, exclude: &[String], block: &[String], address: IpAddr) -> Listing<'_> {
        let having = |names: &[String]| {
            let lists = names.iter().filter_map(|name| self.list(name));
            lists
                .filter(|list| list.prefix_of(address).is_some())
                .collect()
        };
        Listing {
            excluded_by: having(exclude),
            blocked_by: having(block),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates prefixes crowded into few addresses, so that they nest, touch and repeat.
    fn prefix() -> impl Strategy<Value = IpNet> {
        (any::<bool>(), any::<u8>(), 0u8..=8).prop_map(|(v4, last, length)| {
            let (address, fixed): (IpAddr, u8) = if v4 {
                ([192, 0, 2, last].into(), 24)
            } else {
                ([0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()].into(), 120)
            };
            IpNet::new(address, fixed + length)
                .expect("at most the family's bits")
                .trunc()
        })
    }

    proptest! {
        #[test]
        fn a_list_has_the_addresses_of_its_prefixes_and_no_others(
            prefixes in prop::collection::vec(prefix(), 0..24),
        ) {
            let list = List::new("all".to_owned(), &prefixes);
            for last in 0..=u8::MAX {
                for address in [
                    IpAddr::from([192, 0, 2, last]),
                    IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()]),
                ] {
                    let on_it = prefixes.iter().any(|prefix| prefix.contains(&address));
                    let found = list.prefix_of(address);
                    prop_assert_eq!(found.is_some(), on_it, "{}", address);
                    prop_assert!(found.is_none_or(|prefix| prefix.contains(&address)));
                }
            }
            // Sorted, disjoint, and no two that could be one.
            prop_assert!(list.prefixes.is_sorted());
            for pair in list.prefixes.windows(2) {
                prop_assert!(!pair[0].contains(&pair[1]));
                let both = pair[0].supernet();
                prop_assert!(both.is_none() || both != pair[1].supernet());
            }
        }
    }

    proptest! {
        #[test]
        fn a_list_meets_a_prefix_that_it_has_addresses_of(
            prefixes in prop::collection::vec(prefix(), 0..24),
            other in prefix(),
        ) {
            let list = List::new("all".to_owned(), &prefixes);
            let meets = |prefix: &&IpNet| prefix.contains(&other) || other.contains(*prefix);
            prop_assert_eq!(list.meeting(other), list.prefixes.iter().find(meets).copied());
        }
    }

    #[test]
    fn excluded_sources_are_not_blocked() {
        let list = |name: &str, prefix: &str| {
            List::new(name.to_owned(), &vec![prefix.parse().expect("a prefix")])
        };
        let policy = Policy {
            lists: vec![list("us", "192.0.2.0/28"), list("all", "192.0.2.0/24")],
            exclude: vec!["us".to_owned()],
            block: vec!["all".to_owned()],
            ..Policy::from(Vec::new())
        };
        let both = policy.listing_of([192, 0, 2, 1].into());
        assert!(!both.excluded_by.is_empty() && !both.is_blocked());
        let blocked = policy.listing_of([192, 0, 2, 16].into());
        assert!(blocked.excluded_by.is_empty() && blocked.is_blocked());
        let neither = policy.listing_of([192, 0, 3, 0].into());
        assert_eq!(neither, Listing::default());
    }
}
