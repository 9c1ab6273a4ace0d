//! A running count of a map's entries. Walking over all entries every few seconds would take more CPU than
//! everything else a quiet node does.

use std::collections::BTreeMap;

/// The entries with one label.
#[derive(Debug, Default)]
struct Count {
    /// All of them, with removed and ended ones.
    all: usize,
    /// The active ones.
    active: u64,
    /// How many active ones end in each second since 1970.
    ends: BTreeMap<u64, u64>,
}

/// The entries of a map by label.
#[derive(Debug)]
pub(super) struct Tally {
    counts: BTreeMap<Box<str>, Count>,
    /// The last second of which ended entries no longer count.
    now: u64,
}

impl Tally {
    pub(super) const fn new() -> Self {
        Self {
            counts: BTreeMap::new(),
            now: 0,
        }
    }

    /// Counts an entry; `ends_ms`: its end in milliseconds since 1970, 0 if it was removed.
    pub(super) fn add(&mut self, label: &str, ends_ms: u64) {
        if !self.counts.contains_key(label) {
            self.counts.insert(label.into(), Count::default());
        }
        let second = ends_ms.div_ceil(1_000);
        if let Some(count) = self.counts.get_mut(label) {
            count.all += 1;
            if second > self.now {
                count.active += 1;
                *count.ends.entry(second).or_default() += 1;
            }
        }
    }

    /// Stops counting an [added](Self::add) entry.
    pub(super) fn remove(&mut self, label: &str, ends_ms: u64) {
        let Some(count) = self.counts.get_mut(label) else {
            return;
        };
        count.all -= 1;
        let second = ends_ms.div_ceil(1_000);
        if let Some(ending) = count.ends.get_mut(&second) {
            count.active -= 1;
            *ending -= 1;
            if *ending == 0 {
                count.ends.remove(&second);
            }
        }
        if count.all == 0 {
            self.counts.remove(label);
        }
    }

    /// Returns the number of entries with a label, with removed and ended ones.
    pub(super) fn all(&self, label: &str) -> usize {
        self.counts.get(label).map_or(0, |count| count.all)
    }

    /// Stops counting entries that have ended, at a time in milliseconds since 1970 that never falls. An entry
    /// counts to the end of its last second.
    pub(super) fn pass(&mut self, now_ms: u64) {
        self.now = self.now.max(now_ms / 1_000);
        for count in self.counts.values_mut() {
            while let Some(first) = count.ends.first_entry()
                && *first.key() <= self.now
            {
                count.active -= first.remove();
            }
        }
    }

    /// Returns the number of active entries with a label.
    pub(super) fn active(&self, label: &str) -> u64 {
        self.counts.get(label).map_or(0, |count| count.active)
    }

    /// Returns the number of active entries by label.
    pub(super) fn by_label(&self) -> BTreeMap<&str, u64> {
        let counts = self.counts.iter();
        counts
            .map(|(label, count)| (&**label, count.active))
            .collect()
    }
}
