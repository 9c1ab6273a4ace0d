//! The words of other nodes about sources.

use std::collections::{HashMap, hash_map};

use super::{
    letter::{Part, SourceLetter},
    sayings::MOST_SAID,
    word::{SLOTS, Slot, Source, Word, WrongWord},
};
use crate::{Name, bans::MOST_AHEAD_MS};

/// The most words of other nodes that a node remembers.
pub const MOST_HEARD: usize = 500_000;

/// The most other nodes with remembered words.
const MOST_NODES: usize = 10_000;

/// The greatest age of news, in milliseconds: ten minutes.
const NEWS_MS: u64 = 600_000;

/// The greatest age of a slot letter, in milliseconds: a week. Nodes repeat slots each day.
const SLOT_MS: u64 = 7 * 24 * 3_600_000;

/// Why a letter, or a word in it, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotHeard {
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

/// How long before its end a word yields to another node's word, in seconds: longer than the interval
/// between two searches for ended words.
const SOON_S: u64 = 120;

/// A slot of another node, as last received.
#[derive(Debug, Default)]
struct Heard {
    /// The time of its last slot letter; 0: none.
    ms: u64,
    /// Its active words, each with the time of its letter.
    words: HashMap<Source, (Word, u64)>,
}

/// The words of one node.
#[derive(Debug)]
struct Speaker {
    /// The time of its last news.
    news_ms: u64,
    slots: Vec<Heard>,
    /// The number of its active words.
    count: usize,
}

/// The words of other nodes about sources.
#[derive(Debug)]
pub struct SourceMap {
    own: Name,
    ipv6_prefix: u8,
    speakers: HashMap<Name, Speaker>,
    /// The number of words of all nodes.
    count: usize,
}

/// The outcome of a letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The sources with changed words.
    pub sources: Vec<Source>,
    /// The reasons for refused words, each once.
    pub refused: Vec<NotHeard>,
}

impl From<WrongWord> for NotHeard {
    fn from(wrong: WrongWord) -> Self {
        match wrong {
            WrongWord::Prefix => Self::Prefix,
            WrongWord::Ahead => Self::Ahead,
            WrongWord::Source | WrongWord::End => Self::Wrong,
        }
    }
}

impl NotHeard {
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

impl Speaker {
    fn new() -> Self {
        Self {
            news_ms: 0,
            slots: (0..SLOTS).map(|_| Heard::default()).collect(),
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
            speakers: HashMap::new(),
            count: 0,
        }
    }

    /// The number of leading bits of an IPv6 address that identify a source.
    #[must_use]
    pub const fn ipv6_prefix(&self) -> u8 {
        self.ipv6_prefix
    }

    /// Takes a letter of another node, at a time in milliseconds since 1970. A letter older than the node's
    /// last one has no effect, nor has a letter of this node.
    ///
    /// # Errors
    ///
    /// The letter is refused.
    pub fn hear(&mut self, letter: SourceLetter, now_ms: u64) -> Result<Changes, NotHeard> {
        let longest_ms = match letter.part {
            Part::News => NEWS_MS,
            Part::Slot(_) => SLOT_MS,
        };
        if letter.ms > now_ms.saturating_add(MOST_AHEAD_MS) {
            return Err(NotHeard::Ahead);
        }
        if letter.ms < now_ms.saturating_sub(longest_ms) {
            return Err(NotHeard::Old);
        }
        if letter.node == self.own {
            return Ok(Changes::default());
        }
        let room = self.speakers.len() < MOST_NODES;
        let speaker = match self.speakers.entry(letter.node.clone()) {
            hash_map::Entry::Vacant(_) if !room => return Err(NotHeard::Full),
            hash_map::Entry::Vacant(place) => place.insert(Speaker::new()),
            hash_map::Entry::Occupied(place) => place.into_mut(),
        };
        let before = speaker.count;
        let mut hearing = Hearing {
            ms: letter.ms,
            now_ms,
            prefixes: (letter.ipv6_prefix, self.ipv6_prefix),
            room: MOST_SAID.min((MOST_HEARD - self.count.min(MOST_HEARD)) + before),
            changes: Changes::default(),
        };
        match letter.part {
            Part::News => hearing.news(speaker, letter.words),
            Part::Slot(slot) => hearing.slot(speaker, slot, letter.words),
        }
        self.count = self.count + speaker.count - before;
        Ok(hearing.changes)
    }

    /// Chooses one node's word about a source, at a time in seconds since 1970: a word that is not fresh,
    /// then one that does not end soon, then the one with the earliest proof, then the one that ends last.
    #[must_use]
    pub fn word(&self, source: Source, now_s: u64) -> Option<Word> {
        let slot = usize::from(source.slot());
        let words = self.speakers.values().filter_map(|speaker| {
            let (word, _) = speaker.slots.get(slot)?.words.get(&source)?;
            word.holds(now_s).then_some(*word)
        });
        words.min_by_key(|word| {
            (
                word.is_fresh,
                !word.holds(now_s + SOON_S),
                word.since_s,
                std::cmp::Reverse(word.until_s),
            )
        })
    }

    /// Forgets words that have ended, at a time in milliseconds since 1970. Returns their sources, and the
    /// sources of words that end soon: another node's word may take their place.
    pub fn forget(&mut self, now_ms: u64) -> Vec<Source> {
        let now = now_ms / 1_000;
        let mut ended = Vec::new();
        for speaker in self.speakers.values_mut() {
            for slot in &mut speaker.slots {
                let before = slot.words.len();
                slot.words.retain(|source, (word, _)| {
                    if !word.holds(now + SOON_S) {
                        ended.push(*source);
                    }
                    word.holds(now)
                });
                let over = before - slot.words.len();
                speaker.count -= over;
                self.count -= over;
            }
        }
        let oldest_ms = now_ms.saturating_sub(SLOT_MS);
        self.speakers.retain(|_, speaker| {
            let last_ms = speaker.slots.iter().map(|slot| slot.ms).max();
            speaker.count > 0 || speaker.news_ms.max(last_ms.unwrap_or(0)) >= oldest_ms
        });
        ended
    }

    /// Returns the sources of all words, in no order: a source with words of several nodes comes several
    /// times.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let slots = self.speakers.values().flat_map(|speaker| &speaker.slots);
        slots.flat_map(|slot| slot.words.keys().copied())
    }

    /// The number of remembered words.
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

/// A letter being taken.
struct Hearing {
    ms: u64,
    now_ms: u64,
    /// How many leading bits of an IPv6 address identify a source there, and here.
    prefixes: (u8, u8),
    /// For how many more words of the node there is room.
    room: usize,
    changes: Changes,
}

impl Hearing {
    fn news(&mut self, speaker: &mut Speaker, words: Vec<Word>) {
        if self.ms <= speaker.news_ms {
            return;
        }
        speaker.news_ms = self.ms;
        for word in words {
            let slot = usize::from(word.source.slot());
            let Some(heard) = speaker.slots.get_mut(slot) else {
                continue;
            };
            if self.ms > heard.ms {
                self.take(heard, &mut speaker.count, word);
            }
        }
    }

    fn slot(&mut self, speaker: &mut Speaker, slot: Slot, words: Vec<Word>) {
        let Some(heard) = speaker.slots.get_mut(usize::from(slot)) else {
            return;
        };
        if self.ms <= heard.ms {
            return;
        }
        heard.ms = self.ms;
        for word in words {
            if word.source.slot() == slot {
                self.take(heard, &mut speaker.count, word);
            } else {
                self.refuse(NotHeard::Wrong);
            }
        }
        // The slot letter replaces all earlier words of the slot.
        let earlier = heard.words.extract_if(|_, (_, ms)| *ms < self.ms);
        let before = self.changes.sources.len();
        self.changes
            .sources
            .extend(earlier.map(|(source, _)| source));
        speaker.count -= self.changes.sources.len() - before;
    }

    /// Takes a word, unless a later word is known.
    fn take(&mut self, heard: &mut Heard, count: &mut usize, word: Word) {
        let (theirs, own) = self.prefixes;
        if let Err(wrong) = word.check(theirs, own, self.now_ms) {
            return self.refuse(wrong.into());
        }
        let known = heard.words.get(&word.source).copied();
        if known.is_some_and(|(_, ms)| ms > self.ms) {
            return;
        }
        if !word.holds(self.now_ms / 1_000) {
            if heard.words.remove(&word.source).is_some() {
                *count -= 1;
                self.changes.sources.push(word.source);
            }
            return;
        }
        if known.is_none() {
            if *count >= self.room {
                return self.refuse(NotHeard::Full);
            }
            *count += 1;
        }
        heard.words.insert(word.source, (word, self.ms));
        if known.is_none_or(|(known, _)| known != word) {
            self.changes.sources.push(word.source);
        }
    }

    fn refuse(&mut self, why: NotHeard) {
        if !self.changes.refused.contains(&why) {
            self.changes.refused.push(why);
        }
    }
}

#[cfg(test)]
mod tests;
