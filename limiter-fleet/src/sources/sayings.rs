//! A node's own words about sources.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    letter::{MOST_NEWS, MOST_OF_SLOT, Part, SourceLetter},
    word::{SLOTS, Slot, Source, Word},
};
use crate::Name;

/// The most sources with a word of this node.
pub const MOST_SAID: usize = 100_000;

/// How long a changed slot waits to be written, in milliseconds: to gather more changes.
const WAIT_MS: u64 = 5_000;

/// The age at which a slot is written again, in milliseconds: a day.
const AGAIN_MS: u64 = 24 * 3_600_000;

/// How far apart two equal times may be, in seconds: ticks are a little longer than a second.
const SAME_S: u64 = 3;

/// One slot of the node's words.
#[derive(Debug, Default)]
struct Said {
    words: HashMap<Source, Word>,
    /// When it was last written, in milliseconds since 1970; 0: never, and there is nothing to write.
    written_ms: u64,
    /// Since when the store lacks a part of it, in milliseconds since 1970; `None`: the store is up to
    /// date.
    lacking_ms: Option<u64>,
    /// The sources taken back since it was last written.
    taken_back: HashSet<Source>,
}

/// A node's own words about sources.
#[derive(Debug)]
pub struct Sayings {
    node: Name,
    ipv6_prefix: u8,
    slots: Vec<Said>,
    count: usize,
    /// The sources with changes that the other nodes have not received.
    unsent: HashSet<Source>,
    /// The time of the last letter.
    last_ms: u64,
}

impl Sayings {
    /// Returns a node without any words. `ipv6_prefix` is the number of leading bits of an IPv6 address
    /// that identify a source.
    #[must_use]
    pub fn new(node: Name, ipv6_prefix: u8) -> Self {
        Self {
            node,
            ipv6_prefix,
            slots: (0..SLOTS).map(|_| Said::default()).collect(),
            count: 0,
            unsent: HashSet::new(),
            last_ms: 0,
        }
    }

    /// Sets the word about a source, at a time in milliseconds since 1970. A known word is replaced only if
    /// the new one ends more than `margin_s` later, or differs otherwise. Returns `false` if there is no
    /// room for it.
    pub fn say(&mut self, word: Word, margin_s: u64, now_ms: u64) -> bool {
        if word
            .source
            .check(self.ipv6_prefix, self.ipv6_prefix)
            .is_err()
        {
            return true;
        }
        let word = word.bounded(now_ms / 1_000);
        let has_room = self.count < MOST_SAID;
        let Some(said) = self.slots.get_mut(usize::from(word.source.slot())) else {
            return true;
        };
        match said.words.get(&word.source) {
            Some(known) => {
                let is_same = known.is_fresh == word.is_fresh
                    && known.since_s.abs_diff(word.since_s) <= SAME_S
                    && word.until_s < known.until_s.saturating_add(margin_s)
                    && word.until_s.saturating_add(SAME_S) >= known.until_s;
                if is_same {
                    return true;
                }
            }
            None if !has_room || said.words.len() >= MOST_OF_SLOT => return false,
            None => self.count += 1,
        }
        said.words.insert(word.source, word);
        said.lacking_ms.get_or_insert(now_ms);
        self.unsent.insert(word.source);
        true
    }

    /// Takes back all words except the ones that `stays` accepts, at a time in milliseconds since 1970.
    pub fn keep(&mut self, now_ms: u64, mut stays: impl FnMut(&Word) -> bool) {
        for said in &mut self.slots {
            for (source, _) in said.words.extract_if(|_, word| !stays(word)) {
                self.unsent.insert(source);
                said.taken_back.insert(source);
                said.lacking_ms.get_or_insert(now_ms);
                self.count -= 1;
            }
        }
    }

    /// Takes this node's own slot from the store, at a time in milliseconds since 1970. Its words predate
    /// this start, so they are no news.
    pub fn resume(&mut self, letter: SourceLetter, now_ms: u64) {
        let Part::Slot(slot) = letter.part else {
            return;
        };
        self.last_ms = self.last_ms.max(letter.ms);
        let (count, prefix) = (&mut self.count, self.ipv6_prefix);
        let Some(said) = self.slots.get_mut(usize::from(slot)) else {
            return;
        };
        said.written_ms = letter.ms;
        for word in letter.words {
            let is_right = word.check(letter.ipv6_prefix, prefix, now_ms).is_ok()
                && word.source.slot() == slot
                && word.holds(now_ms / 1_000);
            if is_right && *count < MOST_SAID && !said.words.contains_key(&word.source) {
                said.words.insert(word.source, word);
                *count += 1;
            } else {
                said.lacking_ms.get_or_insert(now_ms);
            }
        }
    }

    /// Compares with the store's slots: `there` has the write time of each slot sealed with the current
    /// key. Missing or different slots are written again, and their words sent as news.
    pub fn compare(&mut self, there: &HashMap<Slot, u64>, now_ms: u64) {
        for (slot, said) in (0..=Slot::MAX).zip(&mut self.slots) {
            let is_there = there.get(&slot).is_some_and(|ms| *ms == said.written_ms);
            if !is_there && (said.written_ms > 0 || !said.words.is_empty()) {
                said.lacking_ms.get_or_insert(now_ms);
            }
            if said.lacking_ms.is_some() {
                self.unsent.extend(said.words.keys());
                self.unsent.extend(&said.taken_back);
            }
        }
    }

    /// Schedules all slots to be written again, at a time in milliseconds since 1970.
    pub fn write_all_again(&mut self, now_ms: u64) {
        for said in &mut self.slots {
            if said.written_ms > 0 || !said.words.is_empty() {
                said.lacking_ms.get_or_insert(now_ms);
            }
        }
    }

    /// Returns the next news letter, at a time in milliseconds since 1970; `None`: there is no news.
    pub fn news(&mut self, now_ms: u64) -> Option<SourceLetter> {
        let sources: Vec<_> = self.unsent.iter().take(MOST_NEWS).copied().collect();
        if sources.is_empty() {
            return None;
        }
        let words = sources.into_iter().map(|source| {
            self.unsent.remove(&source);
            let said = self.slots.get(usize::from(source.slot()));
            let said = said.and_then(|said| said.words.get(&source));
            said.copied().unwrap_or(Word {
                source,
                since_s: 0,
                until_s: 0,
                is_fresh: false,
            })
        });
        let words = words.collect();
        Some(self.letter(Part::News, words, now_ms))
    }

    /// Returns up to `most` slots that are due to be written, longest waiting first.
    pub fn due(&mut self, most: usize, now_ms: u64) -> Vec<SourceLetter> {
        let due = (0..=Slot::MAX).zip(&self.slots).filter_map(|(slot, said)| {
            let again_ms = (said.written_ms > 0 && !said.words.is_empty())
                .then(|| said.written_ms.saturating_add(AGAIN_MS));
            let lacking_ms = said.lacking_ms.map(|ms| ms.saturating_add(WAIT_MS));
            let at_ms = again_ms.into_iter().chain(lacking_ms).min()?;
            (at_ms <= now_ms).then_some((at_ms, slot))
        });
        let due: BTreeSet<_> = due.collect();
        let due: Vec<_> = due.into_iter().take(most).map(|(_, slot)| slot).collect();
        let letters = due.into_iter().filter_map(|slot| {
            let said = self.slots.get(usize::from(slot))?;
            let words = said.words.values().copied().collect();
            Some(self.letter(Part::Slot(slot), words, now_ms))
        });
        letters.collect()
    }

    /// Records whether a letter was sent. A failed letter may have arrived nevertheless.
    pub fn sent(&mut self, letter: &SourceLetter, is_sent: bool) {
        match letter.part {
            Part::News if is_sent => {}
            Part::News => self
                .unsent
                .extend(letter.words.iter().map(|word| word.source)),
            Part::Slot(slot) => {
                if let Some(said) = self.slots.get_mut(usize::from(slot)) {
                    said.written_ms = letter.ms;
                    said.lacking_ms = (!is_sent).then_some(letter.ms);
                    if is_sent {
                        said.taken_back.clear();
                    }
                }
            }
        }
    }

    fn letter(&mut self, part: Part, words: Vec<Word>, now_ms: u64) -> SourceLetter {
        self.last_ms = now_ms.max(self.last_ms.saturating_add(1));
        SourceLetter {
            node: self.node.clone(),
            ms: self.last_ms,
            ipv6_prefix: self.ipv6_prefix,
            part,
            words,
        }
    }

    /// The number of words.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no words.
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
