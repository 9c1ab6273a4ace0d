//! The nodes of a fleet, and the share that each has by itself.

use std::{collections::BTreeSet, fmt, iter};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Share, Terms};

/// The sum of all floors, in billionths of the whole: a twentieth.
const FLOORS: Share = Share::billionths(50_000_000);

/// The most banks of an owner.
const MOST_BANKS: usize = 8;

/// The most nodes.
const MOST: usize = 10_000;

/// Returns each node's floor: its share regardless of the other nodes.
#[must_use]
pub const fn floor_among(nodes: u32) -> Share {
    FLOORS.divided(nodes as u64)
}

/// A node: its index in the sorted list of the fleet's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// The nodes of a fleet. All nodes must have the same list.
///
/// While one list replaces another, a node takes the smaller of its shares by the two lists, and exchanges
/// messages only with nodes that do the same ([`Members::between`]). So any mix of nodes with the old list
/// and nodes between the lists has at most the whole: each has at most its share by the old list. The same
/// holds between the lists and for the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    names: Vec<String>,
    /// The first 64 bits of each name's SHA-256.
    digests: Vec<u64>,
    /// The old and the new list, while these are their common names; `None`: there is one list.
    lists: Option<Box<[Self; 2]>>,
}

/// Why names do not make a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersError {
    /// There are no names.
    Empty,
    /// There are more than 10 000 names.
    TooMany(usize),
    /// Two nodes have this name.
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
    /// There are no names, too many, or two alike.
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

    /// Returns the common nodes of two lists, while `next` replaces `before`.
    ///
    /// # Errors
    ///
    /// The lists have no node in common.
    pub fn between(before: Self, next: Self) -> Result<Self, MembersError> {
        let both = (before.names.iter()).filter(|name| next.node(name).is_some());
        let both = Self::new(both.cloned())?;
        Ok(Self {
            lists: Some(Box::new([before, next])),
            ..both
        })
    }

    /// Returns the lists that determine shares: one, or the old and the new.
    #[must_use]
    pub fn lists(&self) -> &[Self] {
        (self.lists.as_deref()).map_or(std::slice::from_ref(self), <[Self; 2]>::as_slice)
    }

    /// Returns the names that nodes must share to accept each other's messages: each list's names, with an
    /// empty one between lists.
    pub(crate) fn alike(&self) -> impl Iterator<Item = &str> {
        let lists = self.lists().iter();
        let names = lists.flat_map(|list| iter::once("").chain(list.names()));
        names.skip(1)
    }

    /// Returns a digest of the lists.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let names: Vec<_> = self.alike().collect();
        digest(names.join(",").as_bytes())
    }

    /// Returns the number of floors that share the twentieth.
    #[must_use]
    pub fn floors(&self) -> u32 {
        let counts = self.lists().iter().map(Self::count);
        counts.max().unwrap_or_default()
    }

    /// Returns the terms of loans. Between two lists, loans are as short as in the smaller fleet, and a
    /// starting node waits as long as in the larger one: so all loans of its earlier start are over, under
    /// either list.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let counts = || self.lists().iter().map(Self::count);
        Terms {
            earlier_ns: Terms::among(counts().max().unwrap_or_default()).loan_ns,
            ..Terms::among(counts().min().unwrap_or_default())
        }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the node with that name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let position = self.names.binary_search_by(|one| one.as_str().cmp(name));
        position
            .ok()
            .and_then(|position| u32::try_from(position).ok())
            .map(NodeId)
    }

    /// Returns each node's share of a budget that it knows nothing about: an equal part if every node is a
    /// bank of every owner, else the floor.
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

    /// Returns the home shares of an owner's budget.
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
        // Each by its index in this list; the order stays, as all lists are sorted by name.
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

    /// Returns an owner's banks. Rendezvous hashing: all nodes compute the same banks, and most owners keep
    /// theirs when a node joins or leaves.
    fn banks(&self, owner: &[u8]) -> Vec<NodeId> {
        let nodes = (0..).map(NodeId).zip(&self.digests);
        if self.digests.len() <= MOST_BANKS {
            return nodes.map(|(node, _)| node).collect();
        }
        let owner = digest(owner);
        // Equal weights fall back to the order of names.
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

/// Mixes two digests into a weight that depends on every bit of both: the finalizer of `SplitMix64`, twice.
const fn mixed(owner: u64, node: u64) -> u64 {
    const fn finalized(number: u64) -> u64 {
        let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }
    finalized(finalized(owner) ^ node)
}

/// The home shares of one owner's budget. Their sum never exceeds the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stakes {
    floor: Share,
    capital: Share,
    /// The nodes with more than a floor, sorted.
    pub(crate) banks: Vec<NodeId>,
}

impl Stakes {
    /// The share that each node has and never lends.
    #[must_use]
    pub const fn floor(&self) -> Share {
        self.floor
    }

    /// Returns whether a node has more than its floor.
    #[must_use]
    pub fn is_bank(&self, node: NodeId) -> bool {
        self.banks.binary_search(&node).is_ok()
    }

    /// Returns a node's share while no loan runs.
    #[must_use]
    pub fn home(&self, node: NodeId) -> Share {
        if self.is_bank(node) {
            self.floor() + self.capital()
        } else {
            self.floor()
        }
    }

    /// The share that each bank has besides its floor.
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

    /// With any split of the nodes between one list and both, their shares of each owner sum to at most the
    /// whole. A starting node waits for all loans given under the earlier list.
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
    fn nodes_accept_those_that_change_the_same_lists() {
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
        // In any order of the file.
        assert_eq!(names(&["b", "a"]), names(&["a", "b"]));
        let members = names(&["b", "a"]).unwrap();
        assert_eq!(members.node("b"), Some(NodeId(1)));
        assert_eq!(members.node("c"), None);
        assert_eq!(members.count(), 2);
    }
}
