//! The nodes of a fleet, and what each has by itself.

use std::{collections::BTreeSet, fmt, iter};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Share, Terms};

/// The part of the whole that all floors make together, in billionths: a twentieth.
const FLOORS: Share = Share::billionths(50_000_000);

/// The most banks of an owner.
const MOST_BANKS: usize = 8;

/// The most nodes.
const MOST: usize = 10_000;

/// Returns the floor of each of so many nodes: what it has, whatever the others do.
#[must_use]
pub const fn floor_among(nodes: u32) -> Share {
    FLOORS.divided(nodes as u64)
}

/// A node by its position among the fleet's names, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// The nodes of a fleet. All nodes must have the same.
///
/// While one list of them takes the place of another, a node has the smaller of its parts by both, and takes part only
/// with those that do so, too ([`Members::between`]). So whichever of some nodes have the one list and some both, all
/// together have at most the whole: each has at most its part by the one. The same holds of both and the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    names: Vec<String>,
    /// A digest of each name, of 64 bits.
    digests: Vec<u64>,
    /// The two lists, whose common names these are; `None`: there is one.
    lists: Option<Box<[Self; 2]>>,
}

/// Names that are not those of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersError {
    /// There is none.
    Empty,
    /// There are more than 10 000.
    TooMany(usize),
    /// Two nodes have the same name.
    Twice(String),
}

impl fmt::Display for MembersError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(formatter, "a fleet has at least one node"),
            Self::TooMany(count) => {
                write!(
                    formatter,
                    "{count} nodes are too many: a fleet has at most {MOST}"
                )
            }
            Self::Twice(name) => write!(formatter, "two nodes have the name '{name}'"),
        }
    }
}

impl std::error::Error for MembersError {}

impl Members {
    /// Makes a fleet of nodes with these names, in any order.
    ///
    /// # Errors
    ///
    /// There are none, too many, or two of one name.
    pub fn new(names: impl IntoIterator<Item = String>) -> Result<Self, MembersError> {
        let mut all = BTreeSet::new();
        for name in names {
            if let Some(name) = all.replace(name) {
                return Err(MembersError::Twice(name));
            }
        }
        match all.len() {
            0 => Err(MembersError::Empty),
            count if count > MOST => Err(MembersError::TooMany(count)),
            _ => Ok(Self {
                digests: all.iter().map(|name| digest(name.as_bytes())).collect(),
                names: all.into_iter().collect(),
                lists: None,
            }),
        }
    }

    /// Makes what a node has that is among both, while the nodes of the first list become those of the second.
    ///
    /// # Errors
    ///
    /// No node is among both.
    pub fn between(before: Self, next: Self) -> Result<Self, MembersError> {
        let both = (before.names.iter()).filter(|name| next.node(name).is_some());
        let both = Self::new(both.cloned())?;
        Ok(Self {
            lists: Some(Box::new([before, next])),
            ..both
        })
    }

    /// Returns the lists by which the nodes have their parts: one, or that which is and that which comes.
    #[must_use]
    pub fn lists(&self) -> &[Self] {
        (self.lists.as_deref()).map_or(std::slice::from_ref(self), <[Self; 2]>::as_slice)
    }

    /// Returns all that nodes must have alike to hear each other: each list's names, and between lists an empty one.
    pub(crate) fn alike(&self) -> impl Iterator<Item = &str> {
        let lists = self.lists().iter();
        let names = lists.flat_map(|list| iter::once("").chain(list.names()));
        names.skip(1)
    }

    /// Returns a digest of that.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let names: Vec<_> = self.alike().collect();
        digest(names.join(",").as_bytes())
    }

    /// Returns into how many floors a twentieth is divided.
    #[must_use]
    pub fn floors(&self) -> u32 {
        let counts = self.lists().iter().map(Self::count);
        counts.max().unwrap_or_default()
    }

    /// Returns the terms of their loans. Between two lists loans last as among the fewer nodes, and a start waits as
    /// among the more: so whichever list a start had before, all is over then that it lent by that.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let counts = || self.lists().iter().map(Self::count);
        Terms {
            earlier_ns: Terms::among(counts().max().unwrap_or_default()).loan_ns,
            ..Terms::among(counts().min().unwrap_or_default())
        }
    }

    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// Returns their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the node of that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let position = self.names.binary_search_by(|one| one.as_str().cmp(name));
        position
            .ok()
            .and_then(|position| u32::try_from(position).ok())
            .map(NodeId)
    }

    /// Returns what each node has of a budget of which it knows nothing yet: with so few nodes that all are
    /// banks of every owner, its equal part; else its floor.
    #[must_use]
    pub fn share_of_unknown(&self) -> Share {
        if self
            .lists()
            .iter()
            .all(|list| list.names.len() <= MOST_BANKS)
        {
            self.stakes(&[]).home(NodeId(0))
        } else {
            floor_among(self.floors())
        }
    }

    /// Returns what the nodes have by themselves of an owner's budget.
    #[must_use]
    pub fn stakes(&self, owner: &[u8]) -> Stakes {
        let floor = floor_among(self.floors());
        let stakes = |banks: Vec<NodeId>, of: usize| Stakes {
            floor,
            capital: Share::WHOLE.without(FLOORS).divided(of as u64),
            banks,
        };
        let Some([before, next]) = self.lists.as_deref() else {
            let banks = self.banks(owner);
            let of = banks.len();
            return stakes(banks, of);
        };
        let (mut banks, also) = (before.banks(owner), next.banks(owner));
        let of = banks.len().max(also.len());
        // Each by its number here, in order: all of them have their names' order.
        banks.retain_mut(|bank| {
            let name = before.name(*bank);
            let is_also = next
                .node(name)
                .is_some_and(|node| also.binary_search(&node).is_ok());
            let own = self.node(name).filter(|_| is_also);
            *bank = own.unwrap_or(*bank);
            own.is_some()
        });
        stakes(banks, of)
    }

    fn name(&self, node: NodeId) -> &str {
        self.names.get(node.0 as usize).map_or("", String::as_str)
    }

    /// Returns the banks of an owner, whom all nodes call the same. Most owners
    /// keep them when a node comes or goes, by rendezvous hashing.
    fn banks(&self, owner: &[u8]) -> Vec<NodeId> {
        let nodes = (0..).map(NodeId).zip(&self.digests);
        if self.digests.len() <= MOST_BANKS {
            return nodes.map(|(node, _)| node).collect();
        }
        let owner = digest(owner);
        // Two of one weight are in the order of their names.
        let mut weighed: Vec<_> = nodes
            .map(|(node, digest)| (mixed(owner, *digest), node))
            .collect();
        weighed.select_nth_unstable(MOST_BANKS);
        weighed.truncate(MOST_BANKS);
        let mut banks: Vec<_> = weighed.into_iter().map(|(_, node)| node).collect();
        banks.sort_unstable();
        banks
    }
}

/// Returns the first 64 bits of the SHA-256.
fn digest(bytes: &[u8]) -> u64 {
    let digest = Sha256::digest(bytes);
    let mut first = [0; 8];
    for (to, byte) in first.iter_mut().zip(digest) {
        *to = byte;
    }
    u64::from_be_bytes(first)
}

/// Mixes two digests to a weight, in which each bit depends on all of theirs: the finalizer of `SplitMix64`,
/// twice.
const fn mixed(owner: u64, node: u64) -> u64 {
    const fn finalized(number: u64) -> u64 {
        let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }
    finalized(finalized(owner) ^ node)
}

/// What nodes have by themselves of one owner's budget, and never more than the whole in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stakes {
    floor: Share,
    capital: Share,
    /// Those that have more than a floor, in order.
    pub(crate) banks: Vec<NodeId>,
}

impl Stakes {
    /// Returns what each node has, and never lends.
    #[must_use]
    pub const fn floor(&self) -> Share {
        self.floor
    }

    /// Returns whether a node has more than its floor.
    #[must_use]
    pub fn is_bank(&self, node: NodeId) -> bool {
        self.banks.binary_search(&node).is_ok()
    }

    /// Returns what a node has while nobody has lent anything.
    #[must_use]
    pub fn home(&self, node: NodeId) -> Share {
        if self.is_bank(node) {
            self.floor() + self.capital()
        } else {
            self.floor()
        }
    }

    /// Returns what each bank has besides its floor.
    #[must_use]
    pub const fn capital(&self) -> Share {
        self.capital
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(count: usize) -> Members {
        Members::new((0..count).map(|number| format!("node-{number}"))).unwrap()
    }

    #[test]
    fn all_have_the_whole_at_most() {
        for count in [1, 2, 7, 8, 9, 10_000] {
            let stakes = fleet(count).stakes(b"All");
            assert_eq!(stakes.banks.len(), count.min(MOST_BANKS));
            let floors: Share = (0..count).map(|_| stakes.floor()).sum();
            let capitals: Share = stakes.banks.iter().map(|_| stakes.capital()).sum();
            let all = floors + capitals;
            assert!(
                all <= Share::WHOLE && all > Share::billionths(999_000_000),
                "{all:?}"
            );
        }
    }

    #[test]
    fn banks_are_others_for_other_owners_and_stay_as_nodes_come() {
        let (few, more) = (fleet(100), fleet(101));
        let name = |members: &Members, node: NodeId| members.names[node.0 as usize].clone();
        let named = |members: &Members, owner: &[u8]| -> BTreeSet<String> {
            members
                .banks(owner)
                .into_iter()
                .map(|node| name(members, node))
                .collect()
        };
        let mut kept = 0;
        let mut all = BTreeSet::new();
        for owner in 0..100_u32 {
            let owner = owner.to_be_bytes();
            let before = named(&few, &owner);
            kept += before.intersection(&named(&more, &owner)).count();
            all.extend(before);
        }
        assert!(kept > 700, "{kept} of 800");
        assert!(all.len() > 95, "{} of 100", all.len());
    }

    /// Whichever nodes have the one list and whichever both, they have at most the whole, of each owner.
    /// Whatever a node lent by the list before, it waits for at its start by the next.
    #[test]
    fn a_start_waits_for_the_loans_of_the_list_before() {
        let list = |count: u32| Members::new((0..count).map(|name| name.to_string())).unwrap();
        for [before, next] in [[5, 6], [100, 101], [101, 100], [1_000, 300], [90, 2_000]] {
            let between = Members::between(list(before), list(next)).unwrap();
            let steps = [list(before), between, list(next)].map(|members| members.terms());
            for [before, next] in [[0, 1], [1, 2]] {
                assert!(steps[next].silent_ns() >= steps[before].lent_ns());
            }
        }
        assert_eq!(list(5).terms(), Terms::DEFAULT);
    }

    #[test]
    fn lists_change_without_more_than_the_whole() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..500 {
            let name = |number: usize| format!("node-{number}");
            let most = if rng.bool() { 10 } else { 40 };
            let mut some = || {
                let count = rng.usize(1..most);
                let names = (0..most).map(name);
                let chosen = rng.choose_multiple(names, count);
                Members::new(chosen).unwrap()
            };
            let lists = [some(), some()];
            let [before, next] = lists.clone();
            let Ok(both) = Members::between(before, next) else {
                continue;
            };
            let owner = rng.u32(..).to_be_bytes();
            for list in &lists {
                let part = |members: &Members, name: &str| {
                    let stakes = members.stakes(&owner);
                    let node = members.node(name);
                    node.map_or(Share::NONE, |node| stakes.home(node))
                };
                let mut all = Share::NONE;
                for name in list.names() {
                    let (alone, both) = (part(list, name), part(&both, name));
                    assert!(both <= alone, "{name} {list:?}");
                    all += if rng.bool() { alone } else { both };
                }
                assert!(all <= Share::WHOLE, "{all:?}");
                assert!(both.share_of_unknown() <= list.share_of_unknown());
                assert!(both.floors() >= list.floors());
            }
            let stakes = both.stakes(&owner);
            assert!(stakes.banks.is_sorted());
            let homes = (0..both.count()).map(|node| stakes.home(NodeId(node)));
            assert!(homes.min() >= Some(both.share_of_unknown()));
        }
        // Most is used all the time.
        let before = fleet(20);
        let both = Members::between(before, fleet(21)).unwrap();
        let used = (0..100_u32).map(|owner| {
            let stakes = both.stakes(&owner.to_be_bytes());
            (0..20)
                .map(|node| stakes.home(NodeId(node)).in_billionths())
                .sum::<u64>()
        });
        let used = used.sum::<u64>() / 100;
        assert!(used > 900_000_000, "{used}");
    }

    #[test]
    fn nodes_hear_those_that_change_the_same_lists() {
        let list =
            |names: &[&str]| Members::new(names.iter().map(|&name| name.to_owned())).unwrap();
        let between =
            |one: &[&str], other: &[&str]| Members::between(list(one), list(other)).unwrap();
        let all = [
            list(&["a", "b"]),
            list(&["a", "b", "c"]),
            between(&["a", "b"], &["a", "b", "c"]),
            between(&["a", "b", "c"], &["a", "b"]),
            between(&["a", "b"], &["b", "c"]),
        ];
        let digests: BTreeSet<_> = all.iter().map(Members::digest).collect();
        assert_eq!(digests.len(), all.len());
        let alike: Vec<_> = all[4].alike().collect();
        assert_eq!(alike, ["a", "b", "", "b", "c"]);
        assert_eq!(all[4].names().collect::<Vec<_>>(), ["b"]);
        let none = Members::between(list(&["a"]), list(&["b"]));
        assert_eq!(none, Err(MembersError::Empty));
    }

    #[test]
    fn names_of_a_fleet() {
        let names = |names: &[&str]| Members::new(names.iter().map(|&name| name.to_owned()));
        assert_eq!(names(&[]), Err(MembersError::Empty));
        assert_eq!(
            names(&["a", "b", "a"]),
            Err(MembersError::Twice("a".to_owned()))
        );
        assert_eq!(
            Members::new((0..=MOST).map(|number| number.to_string())),
            Err(MembersError::TooMany(MOST + 1))
        );
        // Whatever their order in a file.
        assert_eq!(names(&["b", "a"]), names(&["a", "b"]));
        let members = names(&["b", "a"]).unwrap();
        assert_eq!(members.node("b"), Some(NodeId(1)));
        assert_eq!(members.node("c"), None);
        assert_eq!(members.count(), 2);
    }
}
