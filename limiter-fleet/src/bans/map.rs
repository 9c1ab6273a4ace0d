//! The last update about each ban.

use std::collections::{BTreeMap, HashMap, hash_map};

use super::{
    tally::Tally,
    update::{BanId, BanState, BanUpdate, Stamp},
};
use crate::Name;

/// The most bans and lifted bans that a node knows of.
pub const MOST_HELD: usize = 500_000;

/// How long a node remembers at most that a ban was lifted or has ended, in milliseconds: 30 days.
const LONGEST_MEMORY_MS: u64 = 30 * 24 * 3_600_000;

/// How long a node remembers a ban after its end, and any update about it at least, in milliseconds: an hour,
/// in which clocks may disagree and messages be under way.
const AFTERWARDS_MS: u64 = 3_600_000;

/// The last update about a ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time and the node of the update.
    pub stamp: Stamp,
    /// The change.
    pub state: BanState,
    /// The latest end among all updates about the ban, in milliseconds since 1970.
    pub ends_ms: u64,
}

/// The fate of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// It is the last update now.
    New,
    /// It is known.
    Known,
    /// A later update is known.
    Older,
    /// It is over, and the ban is unknown.
    Over,
    /// The map is full.
    Full,
}

/// The last update about each ban.
#[derive(Debug)]
pub struct BanMap {
    entries: HashMap<BanId, Entry>,
    others: Tally,
}

impl Entry {
    /// Returns whether the ban holds at a time in milliseconds since 1970.
    #[must_use]
    pub const fn holds(&self, now_ms: u64) -> bool {
        now_ms < self.state.ends_ms()
    }

    /// Returns when the entry may be forgotten, in milliseconds since 1970: no update about the ban holds any
    /// more.
    fn forgotten_at_ms(&self) -> u64 {
        let own_ms = self.state.ends_ms();
        if own_ms == u64::MAX {
            return own_ms;
        }
        let longest_ms = self.stamp.ms.saturating_add(LONGEST_MEMORY_MS);
        let past_ms = self.ends_ms.min(longest_ms);
        let last_ms = past_ms.max(own_ms).max(self.stamp.ms);
        last_ms.saturating_add(AFTERWARDS_MS)
    }
}

impl BanMap {
    /// Returns an empty map.
    #[must_use]
    pub fn new(own: Name) -> Self {
        Self {
            entries: HashMap::new(),
            others: Tally::new(own),
        }
    }

    /// Takes an update, at a time in milliseconds since 1970.
    pub fn merge(&mut self, update: BanUpdate, now_ms: u64) -> Merged {
        let BanUpdate {
            id,
            stamp,
            state,
            ends_ms,
        } = update;
        let entry = Entry {
            stamp,
            state,
            ends_ms,
        };
        let room = self.entries.len() < MOST_HELD;
        match self.entries.entry(id) {
            hash_map::Entry::Vacant(_) if entry.forgotten_at_ms() <= now_ms => Merged::Over,
            hash_map::Entry::Vacant(_) if !room => Merged::Full,
            hash_map::Entry::Vacant(place) => {
                self.others.add(place.key(), &entry.stamp, &entry.state);
                place.insert(entry);
                Merged::New
            }
            hash_map::Entry::Occupied(mut place) => {
                let known = place.get();
                let ends_ms = known.ends_ms.max(entry.ends_ms);
                // Compared by content too: a node that sends two updates with one stamp must not make the
                // others disagree.
                let order = (&entry.stamp, &entry.state).cmp(&(&known.stamp, &known.state));
                if order.is_gt() {
                    self.others.remove(place.key(), &known.stamp, &known.state);
                    self.others.add(place.key(), &entry.stamp, &entry.state);
                    place.insert(entry);
                }
                place.get_mut().ends_ms = ends_ms;
                match order {
                    std::cmp::Ordering::Greater => Merged::New,
                    std::cmp::Ordering::Equal => Merged::Known,
                    std::cmp::Ordering::Less => Merged::Older,
                }
            }
        }
    }

    /// Records an update of this node, later than all known updates about the ban. `ends_ms`: when a lifted
    /// ban would have ended. Times are in milliseconds since 1970.
    pub fn record(&mut self, id: BanId, state: BanState, ends_ms: u64, now_ms: u64) -> Merged {
        let known = self.entries.get(&id);
        let after_ms = known.map_or(0, |known| known.stamp.ms.saturating_add(1));
        let ends_ms = ends_ms
            .max(state.ends_ms())
            .max(known.map_or(0, |known| known.ends_ms));
        let stamp = Stamp {
            ms: now_ms.max(after_ms),
            node: self.others.own().clone(),
        };
        let update = BanUpdate {
            id,
            stamp,
            state,
            ends_ms,
        };
        self.merge(update, now_ms)
    }

    /// Returns the last update about a ban.
    #[must_use]
    pub fn get(&self, id: &BanId) -> Option<&Entry> {
        self.entries.get(id)
    }

    /// Returns the last update about a ban, ready to send; `None`: the ban is unknown.
    #[must_use]
    pub fn update(&self, id: &BanId) -> Option<BanUpdate> {
        let entry = self.entries.get(id)?;
        Some(BanUpdate {
            id: id.clone(),
            stamp: entry.stamp.clone(),
            state: entry.state.clone(),
            ends_ms: entry.ends_ms,
        })
    }

    /// Returns all entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&BanId, &Entry)> {
        self.entries.iter()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counts the active bans of other nodes by origin, without the bans in `but`. A ban counts to the end
    /// of the second in which it ends. The time is in milliseconds since 1970.
    pub fn of_others<'i>(
        &self,
        now_ms: u64,
        but: impl IntoIterator<Item = &'i BanId>,
    ) -> BTreeMap<String, u64> {
        let but = but.into_iter();
        let but = but.filter_map(|id| {
            let (id, entry) = self.entries.get_key_value(id)?;
            Some((id, &entry.stamp, &entry.state))
        });
        self.others.holding(now_ms, but)
    }

    /// Forgets bans that are over, at a time in milliseconds since 1970; returns their ids.
    pub fn forget(&mut self, now_ms: u64) -> Vec<BanId> {
        let is_over = |_: &BanId, entry: &mut Entry| entry.forgotten_at_ms() <= now_ms;
        let over = self.entries.extract_if(is_over);
        let forgotten = over.map(|(id, entry)| {
            self.others.remove(&id, &entry.stamp, &entry.state);
            id
        });
        forgotten.collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn id(last: u8) -> BanId {
        BanId {
            prefix: format!("192.0.2.{last}/32").parse().unwrap(),
            origin: "operator".into(),
        }
    }

    fn name(node: u8) -> Name {
        char::from(b'a' + node)
            .to_string()
            .as_str()
            .try_into()
            .unwrap()
    }

    fn state(until_ms: Option<u64>) -> BanState {
        BanState::Banned {
            until_ms,
            reason: "why".into(),
            limit: None,
        }
    }

    fn any_update() -> impl Strategy<Value = BanUpdate> {
        let state = prop_oneof![
            Just(BanState::Lifted),
            (0_u64..4_000_000).prop_map(|more| state(Some(NOW + more))),
            Just(state(None)),
        ];
        let ends = prop_oneof![Just(0), NOW..NOW + 5_000_000, Just(u64::MAX)];
        (0_u8..3, NOW - 3..NOW, 0_u8..3, state, ends).prop_map(
            |(last, ms, node, state, ends_ms)| BanUpdate {
                id: id(last),
                stamp: Stamp {
                    ms,
                    node: name(node),
                },
                ends_ms: ends_ms.max(state.ends_ms()),
                state,
            },
        )
    }

    fn merged(updates: impl IntoIterator<Item = BanUpdate>) -> HashMap<BanId, Entry> {
        let mut map = BanMap::new(name(0));
        for update in updates {
            map.merge(update, NOW);
        }
        map.entries
    }

    proptest! {
        /// In any order, with any repetitions.
        #[test]
        fn nodes_that_received_the_same_agree(
            updates in vec(any_update(), 1..12),
            order in vec(any::<Index>(), 0..40),
        ) {
            let again = order.iter().map(|index| index.get(&updates).clone());
            let other = merged(again.chain(updates.iter().rev().cloned()));
            prop_assert_eq!(merged(updates.iter().cloned()), other);
        }

        /// The same when a snapshot of other nodes comes first.
        #[test]
        fn a_node_that_begins_with_a_snapshot_agrees(
            updates in vec(any_update(), 1..12),
            missed in any::<Index>(),
        ) {
            let missed = missed.index(updates.len());
            let mut snapshot = BanMap::new(name(0));
            for update in &updates[..missed] {
                snapshot.merge(update.clone(), NOW);
            }
            let ids = snapshot.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
            let begun = ids.iter().filter_map(|id| snapshot.update(id));
            let late = merged(begun.chain(updates[missed..].iter().cloned()));
            prop_assert_eq!(merged(updates), late);
        }

        /// A node's own update wins, however far ahead other clocks are.
        #[test]
        fn the_own_update_is_the_last(updates in vec(any_update(), 1..12), behind in 0_u64..1_000_000) {
            let mut map = BanMap::new(name(0));
            for update in updates {
                map.merge(update, NOW);
            }
            let before = map.get(&id(0)).map_or(0, |entry| entry.ends_ms);
            prop_assert_eq!(map.record(id(0), BanState::Lifted, 0, NOW - behind), Merged::New);
            prop_assert_eq!(&map.get(&id(0)).unwrap().state, &BanState::Lifted);
            prop_assert_eq!(map.get(&id(0)).unwrap().ends_ms, before);
        }

        #[test]
        fn nothing_repeated_brings_a_ban_back(updates in vec(any_update(), 1..12), later in 0_u64..9_000_000) {
            let mut map = BanMap::new(name(0));
            for update in &updates {
                map.merge(update.clone(), NOW);
            }
            for last in 0..3 {
                map.record(id(last), BanState::Lifted, 0, NOW);
            }
            map.forget(NOW + later);
            for update in updates {
                map.merge(update, NOW + later);
            }
            let mut entries = map.iter();
            prop_assert!(entries.all(|(_, entry)| !entry.holds(NOW + later)));
        }

        /// The running count equals a walk over all entries, except that each second counts to its end.
        #[test]
        fn bans_of_others_are_counted_as_they_change(
            steps in vec((any_update(), any::<bool>(), 0_u64..5_000_000, 0_u8..8), 1..24),
        ) {
            let mut map = BanMap::new(name(0));
            for (update, is_own, later, but) in steps {
                if is_own {
                    map.record(update.id, update.state, update.ends_ms, NOW);
                } else {
                    map.merge(update, NOW);
                }
                map.forget(NOW + later);
                let second = (NOW + later) / 1_000 * 1_000;
                let but: Vec<_> = (0..3).filter(|last| but >> last & 1 == 1).map(id).collect();
                let walk = map.iter().filter(|(id, entry)| {
                    entry.holds(second) && entry.stamp.node != name(0) && !but.contains(id)
                });
                let walked = walk.count() as u64;
                let kept = map.of_others(second + 999, &but);
                prop_assert_eq!(kept.values().sum::<u64>(), walked);
                prop_assert!(!kept.values().any(|count| *count == 0));
            }
        }
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut map = BanMap::new(name(0));
        map.record(id(1), state(Some(NOW + 1_000)), 0, NOW);
        map.record(id(2), state(None), 0, NOW);
        assert!(map.get(&id(1)).unwrap().holds(NOW + 999));
        assert!(!map.get(&id(1)).unwrap().holds(NOW + 1_000));
        assert!(map.get(&id(2)).unwrap().holds(u64::MAX - 1));
        assert_eq!(map.forget(NOW + 1_000 + AFTERWARDS_MS - 1), []);
        let later = NOW + 1_000 + AFTERWARDS_MS;
        assert_eq!(map.forget(later), [id(1)]);
        assert_eq!(map.forget(u64::MAX - 1), []);
        // A lifted ban without an end is remembered for a month.
        map.record(id(2), BanState::Lifted, 0, later);
        assert_eq!(map.forget(later + LONGEST_MEMORY_MS), []);
        let month = later + LONGEST_MEMORY_MS + AFTERWARDS_MS;
        assert_eq!(map.forget(month), [id(2)]);
        assert!(map.is_empty());
        let mut over = BanMap::new(name(0));
        over.record(id(3), state(Some(NOW + 1)), 0, NOW);
        let update = over.update(&id(3)).unwrap();
        assert_eq!(map.merge(update, month), Merged::Over);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut map = BanMap::new(name(0));
        let of = |number: usize| {
            let number = u32::try_from(number).unwrap();
            BanId {
                prefix: std::net::IpAddr::from(number.to_be_bytes()).into(),
                origin: "x".into(),
            }
        };
        for number in 0..MOST_HELD {
            assert_eq!(map.record(of(number), state(None), 0, NOW), Merged::New);
        }
        assert_eq!(map.record(of(MOST_HELD), state(None), 0, NOW), Merged::Full);
        assert_eq!(map.record(of(7), BanState::Lifted, 0, NOW), Merged::New);
        assert_eq!(map.len(), MOST_HELD);
    }
}
