//! Lists: named sets of addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A named set of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Its name in files and output.
    pub name: String,
    /// The fewest prefixes that cover its addresses, sorted and disjoint.
    pub prefixes: Vec<IpNet>,
}

impl List {
    /// Returns the list with these prefixes, which may overlap.
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

    /// Returns the list's first prefix that shares addresses with another prefix.
    #[must_use]
    pub fn meeting(&self, other: IpNet) -> Option<IpNet> {
        // Prefixes are disjoint, so only the last one that begins before `other` may contain it.
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
}
