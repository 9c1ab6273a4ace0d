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

/// The most nodes that are heard.
const MOST_NODES: usize = 10_000;

/// How old news may be, in milliseconds: ten minutes.
const NEWS_MS: u64 = 600_000;

/// How old what a slot says may be, in milliseconds: a week. Nodes say it again each day.
const SLOT_MS: u64 = 7 * 24 * 3_600_000;

/// Why a letter, or a word in it, is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotHeard {
    /// It is from the future.
    Ahead,
    /// It is too old.
    Old,
    /// No node says that.
    Wrong,
    /// A source has another prefix length there.
    Prefix,
    /// There is no room for more.
    Full,
}

/// How long before its end a word counts less than another, in seconds: longer than lies between two looks for
/// words that have ended.
const SOON_S: u64 = 120;

/// The last of what a node said of a slot.
#[derive(Debug, Default)]
struct Heard {
    /// When it said all of it; 0: never.
    ms: u64,
    /// Its words that hold, each with the time when it was said.
    words: HashMap<Source, (Word, u64)>,
}

/// The words of a node.
#[derive(Debug)]
struct Speaker {
    /// When it sent its last news.
    news_ms: u64,
    slots: Vec<Heard>,
    /// How many words of it hold.
    count: usize,
}

/// The words of other nodes about sources.
#[derive(Debug)]
pub struct SourceMap {
    own: Name,
    ipv6_prefix: u8,
    speakers: HashMap<Name, Speaker>,
    /// How many words there are.
    count: usize,
}

/// The outcome of a letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The sources of which something else is said now.
    pub sources: Vec<Source>,
    /// Why some words are not believed, once for each.
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
    /// Returns the map of a node on which so many leading bits of an IPv6 address are one source.
    #[must_use]
    pub fn new(own: Name, ipv6_prefix: u8) -> Self {
        Self {
            own,
            ipv6_prefix,
            speakers: HashMap::new(),
            count: 0,
        }
    }

    /// Returns how many leading bits of an IPv6 address are one source.
    #[must_use]
    pub const fn ipv6_prefix(&self) -> u8 {
        self.ipv6_prefix
    }

    /// Takes a letter of another node, at a time in milliseconds since 1970. One that is earlier than what the node
    /// said last changes nothing, and so does one of this node.
    ///
    /// # Errors
    ///
    /// The letter is not believed.
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

    /// Returns what counts of all that is said of a source, at a time in seconds since 1970: the word of one node. Of
    /// those that hold, one that is not over soon; of such, the one by which it is proven for the longest.
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

    /// Forgets words that have ended, at a time in milliseconds since 1970; returns their sources, and those of words
    /// that are over soon: another node's word counts now, if there is one.
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

    /// Returns all sources of which something is said, in no order; one of which several nodes do, several times.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let slots = self.speakers.values().flat_map(|speaker| &speaker.slots);
        slots.flat_map(|slot| slot.words.keys().copied())
    }

    /// Returns how many words are remembered.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether nothing is said.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A letter while it is taken.
struct Hearing {
    ms: u64,
    now_ms: u64,
    /// How many leading bits of an IPv6 address are one source there, and here.
    prefixes: (u8, u8),
    /// How many words of the node there is room for.
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
        // The node does not say the others any more.
        let earlier = heard.words.extract_if(|_, (_, ms)| *ms < self.ms);
        let before = self.changes.sources.len();
        self.changes
            .sources
            .extend(earlier.map(|(source, _)| source));
        speaker.count -= self.changes.sources.len() - before;
    }

    /// Takes a word, unless a later one is known.
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
