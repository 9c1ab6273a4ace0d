//! The entries of other nodes about sources.

use std::collections::{HashMap, hash_map};

use super::{
    entry::{SLOTS, Slot, Source, SourceEntry, WrongEntry},
    message::{Part, SourceMessage},
    own_entries::MOST_OWN_ENTRIES,
};
use crate::{Name, bans::MOST_AHEAD_MS};

/// The most entries of other nodes that a node remembers.
pub const MOST_RECEIVED_ENTRIES: usize = 500_000;

/// The most other nodes with remembered entries.
const MOST_NODES: usize = 10_000;

/// The greatest age of news, in milliseconds: ten minutes.
const NEWS_MS: u64 = 600_000;

/// The greatest age of a slot message, in milliseconds: a week. Nodes repeat slots each day.
const SLOT_MS: u64 = 7 * 24 * 3_600_000;

/// Why a message, or an entry in it, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageError {
    /// It is from the future.
    Ahead,
    /// It is too old.
    Old,
    /// No honest node would send it.
    Wrong,
    /// The sending node has another IPv6 prefix length.
    Prefix,
    /// The map is full.
    Full,
}

/// How long before its end an entry yields to another node's entry, in seconds: longer than the interval
/// between two searches for ended entries.
const SOON_S: u64 = 120;

/// A slot of another node, as last received.
#[derive(Debug, Default)]
struct ReceivedSlot {
    /// The time of its last slot message; 0: none.
    ms: u64,
    /// Its active entries, each with the time of its message.
    entries: HashMap<Source, (SourceEntry, u64)>,
}

/// The entries of one node.
#[derive(Debug)]
struct Peer {
    /// The time of its last news.
    news_ms: u64,
    slots: Vec<ReceivedSlot>,
    /// The number of its active entries.
    count: usize,
}

/// The entries of other nodes about sources.
#[derive(Debug)]
pub struct SourceMap {
    own: Name,
    ipv6_prefix: u8,
    peers: HashMap<Name, Peer>,
    /// The number of entries of all nodes.
    count: usize,
}

/// The outcome of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The sources with changed entries.
    pub sources: Vec<Source>,
    /// The reasons for refused entries, each once.
    pub refused: Vec<MessageError>,
}

impl From<WrongEntry> for MessageError {
    fn from(wrong: WrongEntry) -> Self {
        match wrong {
            WrongEntry::Prefix => Self::Prefix,
            WrongEntry::Ahead => Self::Ahead,
            WrongEntry::Source | WrongEntry::End => Self::Wrong,
        }
    }
}

impl MessageError {
    /// Returns its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ahead => "source_ahead",
            Self::Old => "source_old",
            Self::Wrong => "source_wrong",
            Self::Prefix => "source_prefix",
            Self::Full => "source_full",
        }
    }
}

impl Peer {
    fn new() -> Self {
        Self {
            news_ms: 0,
            slots: (0..SLOTS).map(|_| ReceivedSlot::default()).collect(),
            count: 0,
        }
    }
}

impl SourceMap {
    /// Returns an empty map of the node `own`. `ipv6_prefix` is the number of leading bits of an IPv6
    /// address that identify a source.
    #[must_use]
    pub fn new(own: Name, ipv6_prefix: u8) -> Self {
        Self {
            own,
            ipv6_prefix,
            peers: HashMap::new(),
            count: 0,
        }
    }

    /// The number of leading bits of an IPv6 address that identify a source.
    #[must_use]
    pub const fn ipv6_prefix(&self) -> u8 {
        self.ipv6_prefix
    }

    /// Takes a message of another node, at a time in milliseconds since 1970. A message older than the node's
    /// last one has no effect, nor has a message of this node.
    ///
    /// # Errors
    ///
    /// The message is refused.
    pub fn receive(
        &mut self,
        message: SourceMessage,
        now_ms: u64,
    ) -> Result<Changes, MessageError> {
        let longest_ms = match message.part {
            Part::News => NEWS_MS,
            Part::Slot(_) => SLOT_MS,
        };
        if message.ms > now_ms.saturating_add(MOST_AHEAD_MS) {
            return Err(MessageError::Ahead);
        }
        if message.ms < now_ms.saturating_sub(longest_ms) {
            return Err(MessageError::Old);
        }
        if message.node == self.own {
            return Ok(Changes::default());
        }
        let room = self.peers.len() < MOST_NODES;
        let peer = match self.peers.entry(message.node.clone()) {
            hash_map::Entry::Vacant(_) if !room => return Err(MessageError::Full),
            hash_map::Entry::Vacant(place) => place.insert(Peer::new()),
            hash_map::Entry::Occupied(place) => place.into_mut(),
        };
        let before = peer.count;
        let mut intake = Intake {
            ms: message.ms,
            now_ms,
            prefixes: (message.ipv6_prefix, self.ipv6_prefix),
            room: MOST_OWN_ENTRIES
                .min((MOST_RECEIVED_ENTRIES - self.count.min(MOST_RECEIVED_ENTRIES)) + before),
            changes: Changes::default(),
        };
        match message.part {
            Part::News => intake.news(peer, message.entries),
            Part::Slot(slot) => intake.slot(peer, slot, message.entries),
        }
        self.count = self.count + peer.count - before;
        Ok(intake.changes)
    }

    /// Chooses one node's entry about a source, at a time in seconds since 1970: an entry that is not fresh,
    /// then one that does not end soon, then the one with the earliest proof, then the one that ends last.
    #[must_use]
    pub fn entry(&self, source: Source, now_s: u64) -> Option<SourceEntry> {
        let slot = usize::from(source.slot());
        let entries = self.peers.values().filter_map(|peer| {
            let (entry, _) = peer.slots.get(slot)?.entries.get(&source)?;
            entry.holds(now_s).then_some(*entry)
        });
        entries.min_by_key(|entry| {
            (
                entry.is_fresh,
                !entry.holds(now_s + SOON_S),
                entry.since_s,
                std::cmp::Reverse(entry.until_s),
            )
        })
    }

    /// Forgets entries that have ended, at a time in milliseconds since 1970. Returns their sources, and the
    /// sources of entries that end soon: another node's entry may take their place.
    pub fn forget(&mut self, now_ms: u64) -> Vec<Source> {
        let now = now_ms / 1_000;
        let mut ended = Vec::new();
        for peer in self.peers.values_mut() {
            for slot in &mut peer.slots {
                let before = slot.entries.len();
                slot.entries.retain(|source, (entry, _)| {
                    if !entry.holds(now + SOON_S) {
                        ended.push(*source);
                    }
                    entry.holds(now)
                });
                let over = before - slot.entries.len();
                peer.count -= over;
                self.count -= over;
            }
        }
        let oldest_ms = now_ms.saturating_sub(SLOT_MS);
        self.peers.retain(|_, peer| {
            let last_ms = peer.slots.iter().map(|slot| slot.ms).max();
            peer.count > 0 || peer.news_ms.max(last_ms.unwrap_or(0)) >= oldest_ms
        });
        ended
    }

    /// Returns the sources of all entries, in no order: a source with entries of several nodes comes several
    /// times.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let slots = self.peers.values().flat_map(|peer| &peer.slots);
        slots.flat_map(|slot| slot.entries.keys().copied())
    }

    /// The number of remembered entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the map is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A message being taken.
struct Intake {
    ms: u64,
    now_ms: u64,
    /// How many leading bits of an IPv6 address identify a source there, and here.
    prefixes: (u8, u8),
    /// For how many more entries of the node there is room.
    room: usize,
    changes: Changes,
}

impl Intake {
    fn news(&mut self, peer: &mut Peer, entries: Vec<SourceEntry>) {
        if self.ms <= peer.news_ms {
            return;
        }
        peer.news_ms = self.ms;
        for entry in entries {
            let slot = usize::from(entry.source.slot());
            let Some(received) = peer.slots.get_mut(slot) else {
                continue;
            };
            if self.ms > received.ms {
                self.take(received, &mut peer.count, entry);
            }
        }
    }

    fn slot(&mut self, peer: &mut Peer, slot: Slot, entries: Vec<SourceEntry>) {
        let Some(received) = peer.slots.get_mut(usize::from(slot)) else {
            return;
        };
        if self.ms <= received.ms {
            return;
        }
        received.ms = self.ms;
        for entry in entries {
            if entry.source.slot() == slot {
                self.take(received, &mut peer.count, entry);
            } else {
                self.refuse(MessageError::Wrong);
            }
        }
        // The slot message replaces all earlier entries of the slot.
        let earlier = received.entries.extract_if(|_, (_, ms)| *ms < self.ms);
        let before = self.changes.sources.len();
        self.changes
            .sources
            .extend(earlier.map(|(source, _)| source));
        peer.count -= self.changes.sources.len() - before;
    }

    /// Takes an entry, unless a later entry is known.
    fn take(&mut self, received: &mut ReceivedSlot, count: &mut usize, entry: SourceEntry) {
        let (theirs, own) = self.prefixes;
        if let Err(wrong) = entry.check(theirs, own, self.now_ms) {
            return self.refuse(wrong.into());
        }
        let known = received.entries.get(&entry.source).copied();
        if known.is_some_and(|(_, ms)| ms > self.ms) {
            return;
        }
        if !entry.holds(self.now_ms / 1_000) {
            if received.entries.remove(&entry.source).is_some() {
                *count -= 1;
                self.changes.sources.push(entry.source);
            }
            return;
        }
        if known.is_none() {
            if *count >= self.room {
                return self.refuse(MessageError::Full);
            }
            *count += 1;
        }
        received.entries.insert(entry.source, (entry, self.ms));
        if known.is_none_or(|(known, _)| known != entry) {
            self.changes.sources.push(entry.source);
        }
    }

    fn refuse(&mut self, why: MessageError) {
        if !self.changes.refused.contains(&why) {
            self.changes.refused.push(why);
        }
    }
}

#[cfg(test)]
mod tests;
