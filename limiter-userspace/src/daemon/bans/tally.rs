//! How many bans a table has: in all, by prefix length, and of those that hold. It copies no bans:
//! it knows only how many end in which second.

use std::collections::BTreeMap;

use limiter_common::{
    address::Family,
    ban::{Ban, BanKey, FOREVER, LENGTH_WORDS},
};

const SECOND: u64 = 1_000_000_000;

/// The origin of a ban, as in [`Ban::limit`]: a limit's interned id, or [`Ban::BY_HAND`].
pub(in crate::daemon) type Origin = u16;

/// How many bans a table has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// All bans, including ended ones.
    entries: u32,
    /// The same by prefix length.
    by_length: BTreeMap<(u32, u64), u32>,
    /// Those that hold: by the second in which they end, their origin and their family.
    ends: BTreeMap<(u64, Origin, usize), u32>,
    /// The sums of `ends`, by family.
    holding: [u32; 2],
    /// How many of all bans limits made, and how many of these hold.
    automatic: u32,
    automatic_holding: u32,
    /// In whole seconds: a ban that has ended by then does not count as holding.
    now: u64,
}

/// Returns the first whole second in which a ban no longer holds.
const fn end(ban: &Ban) -> u64 {
    if ban.until_ns == FOREVER {
        u64::MAX
    } else {
        ban.until_ns.div_ceil(SECOND)
    }
}

const fn family(key: &BanKey) -> Family {
    key.address().family
}

impl Tally {
    /// Returns how many bans there are, including ended ones.
    pub(super) const fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns how many hold, by family; an ended ban counts for up to a second more.
    pub(super) const fn holding(&self) -> [u32; 2] {
        self.holding
    }

    /// Returns how many bans limits made, including ended ones.
    pub(super) const fn automatic(&self) -> u32 {
        self.automatic
    }

    /// Returns how many of those have ended.
    pub(super) const fn automatic_ended(&self) -> u32 {
        self.automatic.saturating_sub(self.automatic_holding)
    }

    /// Returns how many bans have ended.
    pub(super) fn ended(&self) -> u32 {
        self.entries.saturating_sub(self.holding.iter().sum())
    }

    /// Returns the prefix lengths in use, as words of bits: see [`BanKey::length_bit`].
    pub(super) fn lengths(&self) -> [u64; LENGTH_WORDS as usize] {
        let mut lengths = [0; LENGTH_WORDS as usize];
        for (word, bit) in self.by_length.keys() {
            lengths[*word as usize] |= bit;
        }
        lengths
    }

    /// Counts a ban.
    pub(super) fn add(&mut self, key: &BanKey, ban: &Ban) {
        self.entries += 1;
        self.automatic += u32::from(ban.is_automatic());
        *self.by_length.entry(key.length_bit()).or_default() += 1;
        if end(ban) > self.now {
            let family = family(key).index();
            self.holding[family] += 1;
            self.automatic_holding += u32::from(ban.is_automatic());
            *self.ends.entry((end(ban), ban.limit, family)).or_default() += 1;
        }
    }

    /// Stops counting a ban; returns whether it was the last of its length.
    pub(super) fn remove(&mut self, key: &BanKey, ban: &Ban) -> bool {
        self.entries -= 1;
        self.automatic -= u32::from(ban.is_automatic());
        if end(ban) > self.now {
            let family = family(key).index();
            self.holding[family] -= 1;
            self.automatic_holding -= u32::from(ban.is_automatic());
            take_one(&mut self.ends, &(end(ban), ban.limit, family));
        }
        take_one(&mut self.by_length, &key.length_bit())
    }

    /// Sets the time to `now_ns`, in nanoseconds of the decision's clock. Returns the origins of
    /// the bans that have ended since the last call, and how many of each.
    pub(super) fn advance(&mut self, now_ns: u64) -> Vec<(Origin, u32)> {
        self.now = now_ns / SECOND;
        let mut over = Vec::new();
        while let Some(first) = self.ends.first_entry()
            && first.key().0 <= self.now
        {
            let ((_, origin, family), count) = first.remove_entry();
            self.holding[family] -= count;
            if origin != Ban::BY_HAND {
                self.automatic_holding -= count;
            }
            over.push((origin, count));
        }
        over
    }
}

/// Takes one off a count; returns whether that was the last.
fn take_one<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else {
        return true;
    };
    *count -= 1;
    let is_last = *count == 0;
    if is_last {
        counts.remove(key);
    }
    is_last
}
