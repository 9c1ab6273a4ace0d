//! A map that every node of a fleet holds. The last update of each key wins.
//!
//! Every node sends each change that it makes as an [`Update`]. The later of two updates of one key wins; at
//! equal times, the update of the greater node name ([`Stamp`]). So all nodes that have received the same
//! updates, in any order and any number of times, have the same map ([`Replicated`]). A removed entry stays
//! in it as long as a delayed update could revive it.
//!
//! The map also knows the *unsent* entries, which a copy in a store may lack. They are compared before they are sent,
//! since another node may have sent them, or a later update.
//!
//! Times are wall-clock times in milliseconds since 1970, since they travel between hosts. A node stamps
//! its own update later than any update it knows of the key, even if its clock is behind. Updates from the
//! future by more than [`MOST_AHEAD_MS`] are refused.

mod tally;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, btree_map},
    fmt, mem,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use self::tally::Tally;
use crate::{Envelope, Kind, Name, Refusal, envelope::UNREADABLE};

/// How far in the future an update may be, in milliseconds: the tolerated difference of clocks.
pub const MOST_AHEAD_MS: u64 = 60_000;

/// The most updates in a message.
pub const MOST_UPDATES: usize = 256;

/// How long a node remembers an entry after its end, and any update at least, in milliseconds: an hour, in
/// which clocks may disagree and messages be under way.
pub(crate) const AFTERWARDS_MS: u64 = 3_600_000;

/// How far the end of one value may differ between nodes, in milliseconds.
const SAME_END_MS: u64 = 2_000;

/// The most unsent entries up to which more are doubted.
const MOST_DOUBTED: usize = 100_000;

/// The time and the node of an update: updates are ordered by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// The time, in milliseconds since 1970.
    pub ms: u64,
    /// The node.
    pub node: Name,
}

/// A node's update of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Update<V: Value> {
    /// The key.
    pub key: V::Key,
    /// The time and the node.
    pub stamp: Stamp,
    /// The new value.
    pub value: V,
    /// The latest end among all updates of the key, in milliseconds since 1970; [`u64::MAX`]: one of them had
    /// no end.
    pub ends_ms: u64,
}

/// A replicated value.
pub trait Value: Clone + fmt::Debug + Ord + Serialize + DeserializeOwned {
    /// Its key. Its text is the field in the store.
    type Key: Clone + fmt::Debug + fmt::Display + Ord + Serialize + DeserializeOwned;

    /// The setting of this node that updates are checked by.
    type Context: Copy;

    /// The kind of its messages.
    const KIND: Kind;

    /// The most entries, with removed ones.
    const MOST: usize;

    /// The most entries with one label, with removed ones.
    const MOST_ALIKE: usize;

    /// Whether nodes send updates of other nodes to a store that lacks them.
    const IS_RELAYED: bool;

    /// Returns the end, in milliseconds since 1970; [`u64::MAX`]: it has none; 0: the entry is removed.
    fn ends_ms(&self) -> u64;

    /// Returns when an update with this value may be forgotten, in milliseconds since 1970, since no earlier
    /// update can revive the entry any more.
    fn forgotten_at_ms(&self, stamp: &Stamp, ends_ms: u64) -> u64;

    /// Checks an update from another node, at a time in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// No honest node would send it to this one.
    fn check(update: &Update<Self>, context: Self::Context, now_ms: u64) -> Result<(), Refusal>;

    /// Returns the label by which entries are counted at the node `own`; `None`: it does not count.
    fn label<'l>(key: &'l Self::Key, stamp: &'l Stamp, own: &Name) -> Option<&'l str>;

    /// Makes a key share the memory of an equal name.
    fn share_name(_key: &mut Self::Key, _name: &Name) {}
}

/// The last update of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<V> {
    /// The time and the node of the update.
    pub stamp: Stamp,
    /// The value.
    pub value: V,
    /// The latest end among all updates of the key, in milliseconds since 1970.
    pub ends_ms: u64,
    /// The last reading that found the update in the store.
    found: u32,
}

/// The fate of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// It is the last update now.
    New,
    /// It is known.
    Known,
    /// A later update is known.
    Older,
    /// It is over, and the key is unknown.
    Over,
    /// The map is full.
    Full,
}

impl<V: Value> Update<V> {
    /// Reads the updates of a message. They are not checked yet.
    ///
    /// # Errors
    ///
    /// The message is not from a node of the fleet.
    pub fn read_all(envelope: &Envelope, message: &[u8]) -> Result<Vec<Self>, Refusal> {
        let updates: Vec<Self> = envelope.read(message)?;
        let has_room = updates.len() <= MOST_UPDATES;
        has_room.then_some(updates).ok_or(UNREADABLE)
    }
}

/// A value that held on this host before it read the store: this node or another one has made it.
#[derive(Debug)]
struct Seed<V> {
    /// When it was made, in milliseconds since 1970.
    since_ms: u64,
    value: V,
}

/// The last update of each key.
#[derive(Debug)]
pub struct Replicated<V: Value> {
    own: Name,
    entries: BTreeMap<V::Key, Entry<V>>,
    tally: Tally,
    /// The nodes with updates, each name once in memory.
    names: BTreeSet<Name>,
    /// The keys with an update that the store may lack.
    unsent: BTreeSet<V::Key>,
    /// The number of the last reading of the whole store.
    reading: u32,
    /// The values of this host that no update has confirmed yet.
    seeds: BTreeMap<V::Key, Seed<V>>,
}

impl<V: Value> Entry<V> {
    /// Returns whether the value holds at a time in milliseconds since 1970.
    #[must_use]
    pub fn holds(&self, now_ms: u64) -> bool {
        now_ms < self.value.ends_ms()
    }
}

impl<V: Value> Replicated<V> {
    /// Returns an empty map of the node `own`.
    #[must_use]
    pub const fn new(own: Name) -> Self {
        Self {
            own,
            entries: BTreeMap::new(),
            tally: Tally::new(),
            names: BTreeSet::new(),
            unsent: BTreeSet::new(),
            reading: 0,
            seeds: BTreeMap::new(),
        }
    }

    /// Remembers a value that has held on this host since a time in milliseconds since 1970. The store may have it.
    pub fn seed(&mut self, key: V::Key, since_ms: u64, value: V) {
        self.seeds.insert(key, Seed { since_ms, value });
    }

    /// Claims all remaining seeds as this node's: the store has no update about them.
    pub fn record_seeds(&mut self) {
        for (key, seed) in mem::take(&mut self.seeds) {
            self.record_seed(key, seed);
        }
    }

    fn record_seed(&mut self, key: V::Key, Seed { since_ms, value }: Seed<V>) {
        let ends_ms = value.ends_ms();
        self.record_at(since_ms, key, value, ends_ms);
    }

    /// The name of this node.
    #[must_use]
    pub const fn own(&self) -> &Name {
        &self.own
    }

    /// Takes a checked update of another node, at a time in milliseconds since 1970. [`MergeOutcome::New`]: it must
    /// be enforced.
    pub fn take(&mut self, update: Update<V>, now_ms: u64) -> MergeOutcome {
        let (key, ms, ends_ms) = (update.key.clone(), update.stamp.ms, update.value.ends_ms());
        let merged = self.merge(update, now_ms);
        if merged != MergeOutcome::New {
            return merged;
        }
        // Its sender has stored it.
        self.unsent.remove(&key);
        let Some(seed) = self.seeds.remove(&key) else {
            return merged;
        };
        if ends_ms.abs_diff(seed.value.ends_ms()) <= SAME_END_MS {
            return MergeOutcome::Known;
        }
        if ms < seed.since_ms {
            self.record_seed(key, seed);
            return MergeOutcome::Known;
        }
        merged
    }

    /// Records a change made by this node, later than all known updates of the key; returns whether there
    /// is room. `ends_ms`: when a removed entry would have ended. Times are in milliseconds since 1970.
    pub fn record(&mut self, key: V::Key, value: V, ends_ms: u64, now_ms: u64) -> bool {
        self.seeds.remove(&key);
        let known = self.entries.get(&key);
        let after_ms = known.map_or(0, |known| known.stamp.ms.saturating_add(1));
        let ends_ms = ends_ms
            .max(value.ends_ms())
            .max(known.map_or(0, |known| known.ends_ms));
        self.record_at(now_ms.max(after_ms), key, value, ends_ms)
    }

    /// Records a change that this node made at a time; returns whether it is the last update.
    fn record_at(&mut self, ms: u64, key: V::Key, value: V, ends_ms: u64) -> bool {
        let stamp = Stamp {
            ms,
            node: self.own.clone(),
        };
        let update = Update {
            key: key.clone(),
            stamp,
            value,
            ends_ms,
        };
        let is_new = self.merge(update, ms) == MergeOutcome::New;
        if is_new {
            self.unsent.insert(key);
        }
        is_new
    }

    fn merge(&mut self, update: Update<V>, now_ms: u64) -> MergeOutcome {
        let Update {
            mut key,
            mut stamp,
            value,
            ends_ms,
        } = update;
        let is_over = value.forgotten_at_ms(&stamp, ends_ms) <= now_ms;
        let label = V::label(&key, &stamp, &self.own);
        let has_room = self.entries.len() < V::MOST
            && label.is_none_or(|label| self.tally.all(label) < V::MOST_ALIKE);
        match self.names.get(&stamp.node) {
            Some(name) => stamp.node = name.clone(),
            None if is_over => {}
            None => {
                self.names.insert(stamp.node.clone());
            }
        }
        V::share_name(&mut key, &stamp.node);
        let mut entry = Entry {
            stamp,
            value,
            ends_ms,
            found: 0,
        };
        match self.entries.entry(key) {
            btree_map::Entry::Vacant(_) if is_over => MergeOutcome::Over,
            btree_map::Entry::Vacant(_) if !has_room => MergeOutcome::Full,
            btree_map::Entry::Vacant(place) => {
                count(&mut self.tally, &self.own, place.key(), &entry, true);
                place.insert(entry);
                MergeOutcome::New
            }
            btree_map::Entry::Occupied(mut place) => {
                let known = place.get();
                // Compared by content, too: a node that sends two updates with one stamp must not make the
                // others disagree.
                let order = (&entry.stamp, &entry.value).cmp(&(&known.stamp, &known.value));
                entry.ends_ms = entry.ends_ms.max(known.ends_ms);
                if order == Ordering::Greater {
                    count(&mut self.tally, &self.own, place.key(), known, false);
                    count(&mut self.tally, &self.own, place.key(), &entry, true);
                    place.insert(entry);
                } else {
                    place.get_mut().ends_ms = entry.ends_ms;
                }
                match order {
                    Ordering::Greater => MergeOutcome::New,
                    Ordering::Equal => MergeOutcome::Known,
                    Ordering::Less => MergeOutcome::Older,
                }
            }
        }
    }

    /// Returns the last update of a key.
    #[must_use]
    pub fn get(&self, key: &V::Key) -> Option<&Entry<V>> {
        self.entries.get(key)
    }

    /// Returns all entries in the order of their keys, from `first` on.
    pub fn from(&self, first: V::Key) -> impl Iterator<Item = (&V::Key, &Entry<V>)> {
        self.entries.range(first..)
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

    /// Counts the active entries by label, without the keys in `but`, at a time in milliseconds since 1970
    /// that never falls. An entry counts to the end of its last second.
    pub fn active<'k>(
        &mut self,
        now_ms: u64,
        but: impl IntoIterator<Item = &'k V::Key>,
    ) -> BTreeMap<String, u64>
    where
        V::Key: 'k,
    {
        self.tally.pass(now_ms);
        let mut counts = self.tally.by_label();
        for key in but {
            if let Some((key, entry)) = self.entries.get_key_value(key)
                && entry.value.ends_ms().div_ceil(1_000) > now_ms / 1_000
                && let Some(label) = V::label(key, &entry.stamp, &self.own)
                && let Some(count) = counts.get_mut(label)
            {
                *count -= 1;
            }
        }
        counts.retain(|_, count| *count > 0);
        let owned = |(label, count): (&str, u64)| (label.to_owned(), count);
        counts.into_iter().map(owned).collect()
    }

    /// Returns the number of active entries with a label, as last [counted](Self::active) and changed since.
    #[must_use]
    pub fn active_with(&self, label: &str) -> u64 {
        self.tally.active(label)
    }

    /// Forgets entries that no update can revive, at a time in milliseconds since 1970; returns their keys.
    pub fn forget(&mut self, now_ms: u64) -> Vec<V::Key> {
        let is_over = |_: &V::Key, entry: &mut Entry<V>| {
            entry.value.forgotten_at_ms(&entry.stamp, entry.ends_ms) <= now_ms
        };
        let over = self.entries.extract_if(.., is_over);
        let forgotten = over.map(|(key, entry)| {
            count(&mut self.tally, &self.own, &key, &entry, false);
            self.unsent.remove(&key);
            key
        });
        let forgotten = forgotten.collect();
        self.names.retain(Name::is_shared);
        forgotten
    }

    /// The number of updates that the store may lack.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Returns the first keys, up to `most`, with an update to compare and to send.
    #[must_use]
    pub fn first_unsent(&self, most: usize) -> Vec<V::Key> {
        self.unsent.iter().take(most).cloned().collect()
    }

    /// Returns the update of a key that the store lacks; `None`: it need not be sent.
    #[must_use]
    pub fn unsent_update(&self, key: &V::Key) -> Option<Update<V>> {
        let entry = self.entries.get(self.unsent.get(key)?)?;
        Some(Update {
            key: key.clone(),
            stamp: entry.stamp.clone(),
            value: entry.value.clone(),
            ends_ms: entry.ends_ms,
        })
    }

    /// Records that the update of a key was sent.
    pub fn sent(&mut self, key: &V::Key) {
        self.unsent.remove(key);
    }

    /// Records that the store may lack the last update of a key.
    pub fn doubt(&mut self, key: V::Key) {
        let entry = self.entries.get(&key);
        let may_send = entry.is_some_and(|entry| V::IS_RELAYED || entry.stamp.node == self.own);
        if may_send && self.unsent.len() < MOST_DOUBTED {
            self.unsent.insert(key);
        }
    }

    /// Begins to read the whole store.
    pub const fn begin_reading(&mut self) {
        self.reading = self.reading.wrapping_add(1);
    }

    /// Records that the store has the last update of a key.
    pub fn found(&mut self, key: &V::Key) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.found = self.reading;
        }
        self.unsent.remove(key);
    }

    /// Ends the reading: updates that it has not found must be sent.
    pub fn end_reading(&mut self) {
        let lacking = self.entries.iter().filter(|(_, entry)| {
            entry.found != self.reading && (V::IS_RELAYED || entry.stamp.node == self.own)
        });
        self.unsent.extend(lacking.map(|(key, _)| key.clone()));
    }
}

/// Counts an entry, or stops counting it.
fn count<V: Value>(tally: &mut Tally, own: &Name, key: &V::Key, entry: &Entry<V>, is_added: bool) {
    let Some(label) = V::label(key, &entry.stamp, own) else {
        return;
    };
    let ends_ms = entry.value.ends_ms();
    if is_added {
        tally.add(label, ends_ms);
    } else {
        tally.remove(label, ends_ms);
    }
}

#[cfg(test)]
mod tests;
