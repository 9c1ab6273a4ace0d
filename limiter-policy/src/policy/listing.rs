//! The effect of a policy's lists on an address.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;

use super::{Embedding, Limit, List, Policy, embedded};
use crate::text;

/// The reason why no limit bans a prefix, and an operator only by force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BanExemption {
    /// A list forbids it.
    Listed {
        /// The list's name.
        list: String,
        /// The prefix that was asked for.
        asked: IpNet,
        /// The list's prefix that shares addresses with it.
        listed: IpNet,
    },
    /// Its addresses have many owners.
    Embedded(Embedding),
}

/// Formats the reason.
impl fmt::Display for BanExemption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed {
                list,
                asked,
                listed,
            } => {
                if listed.contains(asked) {
                    write!(formatter, "it is")?;
                } else {
                    write!(formatter, "{} in it is", text::short(*listed))?;
                }
                write!(formatter, " on the list {list}, under `never-ban`")
            }
            Self::Embedded(Embedding { name, prefix }) => write!(
                formatter,
                "each address of {prefix} is another IPv4 host's ({name})"
            ),
        }
    }
}

/// The effect of lists on an address, before any limit or in one limit. Excluding wins over blocking.
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

    /// Returns the effect of the lists that apply before any limit.
    #[must_use]
    pub fn listing_of(&self, address: IpAddr) -> Listing<'_> {
        self.listing(&self.exclude, &self.block, address)
    }

    /// Returns why a prefix must not be banned: the first list under `never-ban` that shares addresses with
    /// it, or the translators that give its addresses to many owners. `None`: it may be banned.
    #[must_use]
    pub fn never_banned(&self, asked: IpNet) -> Option<BanExemption> {
        let mut lists = self.never_ban.iter().filter_map(|name| self.list(name));
        let listed = lists.find_map(|list| {
            let listed = list.meeting(asked)?;
            Some(BanExemption::Listed {
                list: list.name.clone(),
                asked,
                listed,
            })
        });
        listed.or_else(|| embedded::among(&self.nat64, asked).map(BanExemption::Embedded))
    }

    /// Returns the effect of a limit's lists. It applies only if [`Self::listing_of`] has no effect and the
    /// address is not banned; blocking applies only to packets that the limit counts.
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
    use super::*;

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
