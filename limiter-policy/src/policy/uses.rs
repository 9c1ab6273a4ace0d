//! A policy's uses of its lists, and contradictions between them.

use std::fmt;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{List, Policy};
use crate::text;

/// The most prefixes shown of an overlap.
const MOST_SHOWN: usize = 10;

/// The purpose of a list's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Its addresses are not limited.
    Exclude,
    /// Its addresses are dropped.
    Block,
    /// Its addresses are not banned.
    NeverBan,
    /// Its addresses are proven.
    Proven,
}

impl Purpose {
    /// Returns its name in configuration files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exclude => "exclude",
            Self::Block => "block",
            Self::NeverBan => "never-ban",
            Self::Proven => "standing.proven",
        }
    }
}

/// One use of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ListUse<'p> {
    /// The list's name.
    pub list: &'p str,
    /// The purpose.
    pub purpose: Purpose,
    /// The name of the limit that uses it; `None`: it applies before any limit.
    pub limit: Option<&'p str>,
}

/// Formats the field of the configuration.
impl fmt::Display for ListUse<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(limit) = self.limit {
            write!(formatter, "limits.{limit}.")?;
        }
        formatter.write_str(self.purpose.name())
    }
}

/// Addresses that are both excluded and blocked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Overlap<'p> {
    /// The use that wins.
    pub holds: ListUse<'p>,
    /// The use that loses.
    pub other: ListUse<'p>,
    /// The prefixes on both lists, sorted.
    pub prefixes: Vec<IpNet>,
}

impl fmt::Display for Overlap<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holds, other, .. } = self;
        write!(
            formatter,
            "the lists {} ({holds}) and {} ({other}) both have ",
            holds.list, other.list
        )?;
        for (number, prefix) in self.prefixes.iter().take(MOST_SHOWN).enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(formatter, "{comma}{prefix}")?;
        }
        let hidden = self.prefixes.len().saturating_sub(MOST_SHOWN);
        if hidden > 0 {
            write!(formatter, " and {} more", text::count(hidden as u64))?;
        }
        write!(formatter, ": {holds} wins")
    }
}

impl Policy {
    /// Returns every use of a list, uses before any limit first. A limit with several rates counts once.
    /// `proven` counts only if a limit uses standing.
    pub fn list_uses(&self) -> impl Iterator<Item = ListUse<'_>> {
        let limits = self.limits.iter().filter(|limit| limit.is_first_part());
        let by_limits = limits.map(|limit| (Some(&*limit.name), &limit.exclude, &limit.block));
        let all = std::iter::once((None, &self.exclude, &self.block)).chain(by_limits);
        let never_ban = self.never_ban.iter().map(|list| ListUse {
            list,
            purpose: Purpose::NeverBan,
            limit: None,
        });
        let of_standing = self.standing.iter().filter(|_| self.uses_standing());
        let proven = of_standing.flat_map(|standing| &standing.proven);
        let proven = proven.map(|list| ListUse {
            list,
            purpose: Purpose::Proven,
            limit: None,
        });
        let all = all.flat_map(|(limit, exclude, block)| {
            let exclude = exclude.iter().map(|list| (list, Purpose::Exclude));
            let block = block.iter().map(|list| (list, Purpose::Block));
            exclude.chain(block).map(move |(list, purpose)| ListUse {
                list,
                purpose,
                limit,
            })
        });
        never_ban.chain(proven).chain(all)
    }

    /// Returns the addresses that are both excluded and blocked: both before any limit, both by one limit, or
    /// one of each.
    #[must_use]
    pub fn overlaps(&self) -> Vec<Overlap<'_>> {
        let uses: Vec<_> = self.list_uses().collect();
        let with = |purpose| uses.iter().filter(move |one| one.purpose == purpose);
        let pairs = with(Purpose::Exclude)
            .flat_map(|exclude| with(Purpose::Block).map(move |block| (*exclude, *block)));
        pairs
            .filter_map(|(exclude, block)| {
                let (holds, other) = match (exclude.limit, block.limit) {
                    (Some(_), None) => (block, exclude),
                    (Some(one), Some(other)) if one != other => return None,
                    _ => (exclude, block),
                };
                let prefixes = common(self.list(exclude.list)?, self.list(block.list)?);
                (!prefixes.is_empty()).then_some(Overlap {
                    holds,
                    other,
                    prefixes,
                })
            })
            .collect()
    }

    /// Returns the unused lists.
    pub fn unused_lists(&self) -> impl Iterator<Item = &List> {
        let lists = self.lists.iter();
        lists.filter(|list| self.list_uses().all(|one| one.list != list.name))
    }
}

/// Returns the prefixes on both lists. Each list is sorted and disjoint, and two prefixes either nest or are
/// disjoint, so one walk over both suffices.
fn common(one: &List, other: &List) -> Vec<IpNet> {
    let mut common = Vec::new();
    let (mut ones, mut others) = (
        one.prefixes.iter().peekable(),
        other.prefixes.iter().peekable(),
    );
    while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
        if one.contains(*other) {
            common.push(**other);
            others.next();
        } else if other.contains(*one) {
            common.push(**one);
            ones.next();
        } else if one < other {
            ones.next();
        } else {
            others.next();
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::BUILT_IN;
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Limit;

    fn list(name: &str, prefixes: &[&str]) -> List {
        let prefixes = prefixes.iter().map(|text| text.parse().expect("a prefix"));
        List::new(name.to_owned(), &prefixes.collect())
    }

    #[test]
    fn overlaps_say_who_wins() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let limit = |name: &str, exclude: &[&str], block: &[&str]| Limit {
            name: name.to_owned(),
            exclude: names(exclude),
            block: names(block),
            ..Limit::of_built_in(&BUILT_IN[0], None)
        };
        let many: Vec<String> = (0..12)
            .map(|number| format!("203.0.113.{}", 2 * number))
            .collect();
        let many: Vec<String> = many.iter().map(|text| format!("{text}/32")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let policy = Policy {
            lists: vec![
                list("us", &["192.0.2.0/28", "2001:db8::/32"]),
                list(
                    "them",
                    &["192.0.2.0/24", "2001:db8::7/128", "203.0.113.0/24"],
                ),
                list("many", &many),
                list("unused", &["192.0.2.0/24"]),
            ],
            exclude: names(&["us"]),
            block: names(&["them"]),
            ..Policy::from(vec![
                limit("Web", &["many"], &["us"]),
                limit("Dns", &[], &["many"]),
            ])
        };
        let reported: Vec<String> = policy.overlaps().iter().map(ToString::to_string).collect();
        assert_eq!(
            reported,
            [
                "the lists us (exclude) and them (block) both have 192.0.2.0/28, 2001:db8::7/128: \
                 exclude wins",
                "the lists us (exclude) and us (limits.Web.block) both have 192.0.2.0/28, \
                 2001:db8::/32: exclude wins",
                "the lists them (block) and many (limits.Web.exclude) both have 203.0.113.0/32, \
                 203.0.113.2/32, 203.0.113.4/32, 203.0.113.6/32, 203.0.113.8/32, 203.0.113.10/32, \
                 203.0.113.12/32, 203.0.113.14/32, 203.0.113.16/32, 203.0.113.18/32 and 2 more: \
                 block wins",
            ]
        );
        let unused: Vec<_> = policy.unused_lists().map(|list| &list.name).collect();
        assert_eq!(unused, ["unused"]);
    }

    proptest! {
        #[test]
        fn lists_have_in_common_what_both_have(
            one in prop::collection::vec((any::<u8>(), 24u8..=32), 0..16),
            other in prop::collection::vec((any::<u8>(), 24u8..=32), 0..16),
        ) {
            let list = |prefixes: Vec<(u8, u8)>| {
                let prefixes = prefixes.into_iter().map(|(last, length)| {
                    IpNet::new([192, 0, 2, last].into(), length).expect("a length").trunc()
                });
                List::new(String::new(), &prefixes.collect())
            };
            let (one, other) = (list(one), list(other));
            let common = List::new(String::new(), &common(&one, &other));
            for last in 0..=u8::MAX {
                let on = |list: &List| list.prefix_of([192, 0, 2, last].into()).is_some();
                prop_assert_eq!(on(&common), on(&one) && on(&other));
            }
        }
    }
}
