//! A node's own entries about sources.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    entry::{SLOTS, Slot, Source, SourceEntry},
    message::{MOST_NEWS, MOST_OF_SLOT, Part, SourceMessage},
};
use crate::Name;

/// The most sources with an entry of this node.
pub const MOST_OWN_ENTRIES: usize = 100_000;

/// How long a changed slot waits to be written, in milliseconds: to gather more changes.
const WAIT_MS: u64 = 5_000;

/// The age at which a slot is written again, in milliseconds: a day.
const AGAIN_MS: u64 = 24 * 3_600_000;

/// How far apart two equal times may be, in seconds: ticks are a little longer than a second.
const SAME_S: u64 = 3;

/// One slot of the node's entries.
#[derive(Debug, Default)]
struct OwnSlot {
    entries: HashMap<Source, SourceEntry>,
    /// When it was last written, in milliseconds since 1970; 0: never, and there is nothing to write.
    written_ms: u64,
    /// Since when the store lacks a part of it, in milliseconds since 1970; `None`: the store is up to
    /// date.
    lacking_ms: Option<u64>,
    /// The sources taken back since it was last written.
    taken_back: HashSet<Source>,
}

/// A node's own entries about sources.
#[derive(Debug)]
pub struct OwnEntries {
    node: Name,
    ipv6_prefix: u8,
    slots: Vec<OwnSlot>,
    count: usize,
    /// The sources with changes that the other nodes have not received.
    unsent: HashSet<Source>,
    /// The time of the last message.
    last_ms: u64,
}

impl OwnEntries {
    /// Returns a node without any entries. `ipv6_prefix` is the number of leading bits of an IPv6 address
    /// that identify a source.
    #[must_use]
    pub fn new(node: Name, ipv6_prefix: u8) -> Self {
        Self {
            node,
            ipv6_prefix,
            slots: (0..SLOTS).map(|_| OwnSlot::default()).collect(),
            count: 0,
            unsent: HashSet::new(),
            last_ms: 0,
        }
    }

    /// Sets the entry about a source, at a time in milliseconds since 1970. A known entry is replaced only if
    /// the new one ends more than `margin_s` later, or differs otherwise. Returns `false` if there is no
    /// room for it.
    pub fn set(&mut self, entry: SourceEntry, margin_s: u64, now_ms: u64) -> bool {
        if entry
            .source
            .check(self.ipv6_prefix, self.ipv6_prefix)
            .is_err()
        {
            return true;
        }
        let entry = entry.bounded(now_ms / 1_000);
        let has_room = self.count < MOST_OWN_ENTRIES;
        let Some(own_slot) = self.slots.get_mut(usize::from(entry.source.slot())) else {
            return true;
        };
        match own_slot.entries.get(&entry.source) {
            Some(known) => {
                let is_same = known.is_fresh == entry.is_fresh
                    && known.since_s.abs_diff(entry.since_s) <= SAME_S
                    && entry.until_s < known.until_s.saturating_add(margin_s)
                    && entry.until_s.saturating_add(SAME_S) >= known.until_s;
                if is_same {
                    return true;
                }
            }
            None if !has_room || own_slot.entries.len() >= MOST_OF_SLOT => return false,
            None => self.count += 1,
        }
        own_slot.entries.insert(entry.source, entry);
        own_slot.lacking_ms.get_or_insert(now_ms);
        self.unsent.insert(entry.source);
        true
    }

    /// Takes back all entries except the ones that `stays` accepts, at a time in milliseconds since 1970.
    pub fn keep(&mut self, now_ms: u64, mut stays: impl FnMut(&SourceEntry) -> bool) {
        for own_slot in &mut self.slots {
            for (source, _) in own_slot.entries.extract_if(|_, entry| !stays(entry)) {
                self.unsent.insert(source);
                own_slot.taken_back.insert(source);
                own_slot.lacking_ms.get_or_insert(now_ms);
                self.count -= 1;
            }
        }
    }

    /// Takes this node's own slot from the store, at a time in milliseconds since 1970. Its entries predate
    /// this start, so they are no news.
    pub fn resume(&mut self, message: SourceMessage, now_ms: u64) {
        let Part::Slot(slot) = message.part else {
            return;
        };
        self.last_ms = self.last_ms.max(message.ms);
        let (count, prefix) = (&mut self.count, self.ipv6_prefix);
        let Some(own_slot) = self.slots.get_mut(usize::from(slot)) else {
            return;
        };
        own_slot.written_ms = message.ms;
        for entry in message.entries {
            let is_right = entry.check(message.ipv6_prefix, prefix, now_ms).is_ok()
                && entry.source.slot() == slot
                && entry.holds(now_ms / 1_000);
            if is_right
                && *count < MOST_OWN_ENTRIES
                && !own_slot.entries.contains_key(&entry.source)
            {
                own_slot.entries.insert(entry.source, entry);
                *count += 1;
            } else {
                own_slot.lacking_ms.get_or_insert(now_ms);
            }
        }
    }

    /// Compares with the store's slots: `there` has the write time of each slot authenticated with the
    /// current key. Missing or different slots are written again, and their entries sent as news.
    pub fn compare(&mut self, there: &HashMap<Slot, u64>, now_ms: u64) {
        for (slot, own_slot) in (0..=Slot::MAX).zip(&mut self.slots) {
            let is_there = there
                .get(&slot)
                .is_some_and(|ms| *ms == own_slot.written_ms);
            if !is_there && (own_slot.written_ms > 0 || !own_slot.entries.is_empty()) {
                own_slot.lacking_ms.get_or_insert(now_ms);
            }
            if own_slot.lacking_ms.is_some() {
                self.unsent.extend(own_slot.entries.keys());
                self.unsent.extend(&own_slot.taken_back);
            }
        }
    }

    /// Schedules all slots to be written again, at a time in milliseconds since 1970.
    pub fn write_all_again(&mut self, now_ms: u64) {
        for own_slot in &mut self.slots {
            if own_slot.written_ms > 0 || !own_slot.entries.is_empty() {
                own_slot.lacking_ms.get_or_insert(now_ms);
            }
        }
    }

    /// Returns the next news message, at a time in milliseconds since 1970; `None`: there is no news.
    pub fn news(&mut self, now_ms: u64) -> Option<SourceMessage> {
        let sources: Vec<_> = self.unsent.iter().take(MOST_NEWS).copied().collect();
        if sources.is_empty() {
            return None;
        }
        let entries = sources.into_iter().map(|source| {
            self.unsent.remove(&source);
            let own_slot = self.slots.get(usize::from(source.slot()));
            let own_slot = own_slot.and_then(|own_slot| own_slot.entries.get(&source));
            own_slot.copied().unwrap_or(SourceEntry {
                source,
                since_s: 0,
                until_s: 0,
                is_fresh: false,
            })
        });
        let entries = entries.collect();
        Some(self.message(Part::News, entries, now_ms))
    }

    /// Returns up to `most` slots that are due to be written, longest waiting first.
    pub fn due(&mut self, most: usize, now_ms: u64) -> Vec<SourceMessage> {
        let due = (0..=Slot::MAX)
            .zip(&self.slots)
            .filter_map(|(slot, own_slot)| {
                let again_ms = (own_slot.written_ms > 0 && !own_slot.entries.is_empty())
                    .then(|| own_slot.written_ms.saturating_add(AGAIN_MS));
                let lacking_ms = own_slot.lacking_ms.map(|ms| ms.saturating_add(WAIT_MS));
                let at_ms = again_ms.into_iter().chain(lacking_ms).min()?;
                (at_ms <= now_ms).then_some((at_ms, slot))
            });
        let due: BTreeSet<_> = due.collect();
        let due: Vec<_> = due.into_iter().take(most).map(|(_, slot)| slot).collect();
        let messages = due.into_iter().filter_map(|slot| {
            let own_slot = self.slots.get(usize::from(slot))?;
            let entries = own_slot.entries.values().copied().collect();
            Some(self.message(Part::Slot(slot), entries, now_ms))
        });
        messages.collect()
    }

    /// Records whether a message was sent. A failed message may have arrived nevertheless.
    pub fn sent(&mut self, message: &SourceMessage, is_sent: bool) {
        match message.part {
            Part::News if is_sent => {}
            Part::News => self
                .unsent
                .extend(message.entries.iter().map(|entry| entry.source)),
            Part::Slot(slot) => {
                if let Some(own_slot) = self.slots.get_mut(usize::from(slot)) {
                    own_slot.written_ms = message.ms;
                    own_slot.lacking_ms = (!is_sent).then_some(message.ms);
                    if is_sent {
                        own_slot.taken_back.clear();
                    }
                }
            }
        }
    }

    fn message(&mut self, part: Part, entries: Vec<SourceEntry>, now_ms: u64) -> SourceMessage {
        self.last_ms = now_ms.max(self.last_ms.saturating_add(1));
        SourceMessage {
            node: self.node.clone(),
            ms: self.last_ms,
            ipv6_prefix: self.ipv6_prefix,
            part,
            entries,
        }
    }

    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of sources with changes that the other nodes have not received.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }
}

#[cfg(test)]
mod tests;
