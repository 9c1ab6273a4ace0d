//! Counts the bans of a table: in all, by prefix length, and holding. It keeps no copy of the bans, only the number
//! that end in each second.

use std::collections::BTreeMap;

use limiter_common::{
    address::Family,
    ban::{Ban, BanKey, FOREVER, LENGTH_WORDS},
};

use super::origin_kind::OriginKind;

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Including ended bans.
    entries: u32,
    /// `entries` by prefix length.
    by_length: BTreeMap<(u32, u64), u32>,
    /// Holding bans by the second of their end, origin kind and family.
    ends: BTreeMap<(u64, OriginKind, usize), u32>,
    /// The sums of `ends` by origin kind and family.
    holding: BTreeMap<OriginKind, [u32; 2]>,
    /// Automatic bans, including ended ones.
    automatic: u32,
    /// In whole seconds: a ban that ends by then does not count as holding.
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
    /// The number of bans, including ended ones.
    pub(super) const fn entries(&self) -> u32 {
        self.entries
    }

    /// The number of holding bans by origin kind and family; an ended ban counts for up to a second more.
    pub(super) const fn holding(&self) -> &BTreeMap<OriginKind, [u32; 2]> {
        &self.holding
    }

    /// The number of automatic bans, including ended ones.
    pub(super) const fn automatic(&self) -> u32 {
        self.automatic
    }

    /// The number of automatic bans that have ended.
    pub(super) fn automatic_ended(&self) -> u32 {
        self.automatic - self.sum(OriginKind::is_limit)
    }

    pub(super) fn ended(&self) -> u32 {
        self.entries - self.sum(|_| true)
    }

    /// The number of holding bans of some origin kinds.
    fn sum(&self, is_among: impl Fn(OriginKind) -> bool) -> u32 {
        let origin_kinds = self
            .holding
            .iter()
            .filter(|(origin_kind, _)| is_among(**origin_kind));
        origin_kinds.map(|(_, [v4, v6])| v4 + v6).sum()
    }

    /// Returns the prefix lengths in use, as words of bits: see [`BanKey::length_bit`].
    pub(super) fn lengths(&self) -> [u64; LENGTH_WORDS as usize] {
        let mut lengths = [0; LENGTH_WORDS as usize];
        for (word, bit) in self.by_length.keys() {
            lengths[*word as usize] |= bit;
        }
        lengths
    }

    pub(super) fn add(&mut self, key: &BanKey, ban: &Ban) {
        self.entries += 1;
        self.automatic += u32::from(ban.is_automatic());
        *self.by_length.entry(key.length_bit()).or_default() += 1;
        if end(ban) > self.now {
            let (origin_kind, family) = (OriginKind::of(ban), family(key).index());
            self.holding.entry(origin_kind).or_default()[family] += 1;
            *self
                .ends
                .entry((end(ban), origin_kind, family))
                .or_default() += 1;
        }
    }

    /// Stops counting a ban; returns whether it was the last of its length.
    pub(super) fn remove(&mut self, key: &BanKey, ban: &Ban) -> bool {
        self.entries -= 1;
        self.automatic -= u32::from(ban.is_automatic());
        if end(ban) > self.now {
            let (origin_kind, family) = (OriginKind::of(ban), family(key).index());
            self.holding.entry(origin_kind).or_default()[family] -= 1;
            take_one(&mut self.ends, &(end(ban), origin_kind, family));
        }
        take_one(&mut self.by_length, &key.length_bit())
    }

    /// Sets the time to `now_ns`, in nanoseconds of the decision's clock. Returns the number of bans that have ended
    /// since the last call, by origin kind.
    pub(super) fn advance(&mut self, now_ns: u64) -> Vec<(OriginKind, u32)> {
        self.now = now_ns / SECOND;
        let mut over = Vec::new();
        while let Some(first) = self.ends.first_entry()
            && first.key().0 <= self.now
        {
            let ((_, origin_kind, family), count) = first.remove_entry();
            self.holding.entry(origin_kind).or_default()[family] -= count;
            over.push((origin_kind, count));
        }
        over
    }
}

/// Decrements a count; returns whether it reached zero.
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
