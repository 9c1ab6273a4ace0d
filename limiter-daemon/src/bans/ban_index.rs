//! Makes, lifts and forgets bans: changes the table, which holds them, and keeps its counts up to date.

use std::{
    collections::{BTreeMap, HashSet},
    mem,
    sync::Arc,
};

use ipnet::IpNet;
use limiter_common::{
    address::Address,
    ban::{Ban, BanKey},
};
use limiter_datapath::kernel::DatapathError;
use limiter_policy::policy::bans::{MOST_ORIGINS, Origin, forgotten_at, prefix_of, with, without};
use limiter_protocol::web::BanTotals;
use tokio::sync::Notify;

use super::{
    journal::{Journal, JournalEntry},
    new::{BanEffects, BanError, NewBan},
    origin_kind::OriginKind,
    prefix,
    table::BanTable,
    tally::Tally,
};

/// Removals after which the filter is cleared; as many as the table has entries, if these are more.
const MOST_REMOVED: u32 = 10_000;

/// Automatic bans leave 1 / `KEPT_PART` of the table to bans by hand.
const KEPT_PART: u32 = 4;

/// The number of bans, and of changes to them since the daemon started.
#[derive(Clone, Debug, Default)]
pub(crate) struct BanCounts {
    holding: BTreeMap<OriginKind, [u32; 2]>,
    done: BTreeMap<OriginKind, BanTotals>,
}

impl BanCounts {
    /// The number of bans that hold, by family, for all origin kinds of a name, as of a second ago at most.
    pub(crate) fn holding(&self, name: &str) -> [u32; 2] {
        let origin_kinds = self.holding.iter();
        sum(origin_kinds
            .filter(|(origin_kind, _)| origin_kind.name() == name)
            .map(|(_, holding)| holding))
    }

    /// The changes to the bans of an origin kind.
    pub(crate) fn done(&self, origin_kind: OriginKind) -> BanTotals {
        let done = self.done.get(&origin_kind);
        done.copied().unwrap_or_default()
    }
}

/// The counts and positions kept beside a table of bans.
#[derive(Debug, Default)]
pub(crate) struct BanIndex {
    /// The id of the table that was counted; `None`: none yet.
    counted: Option<u32>,
    tally: Tally,
    done: BTreeMap<OriginKind, BanTotals>,
    /// Incremented whenever the table changes or another is opened.
    changes: u64,
    /// Removals since the filter was cleared.
    removed: u32,
    /// Where the search for ended bans continues.
    position: Option<u32>,
    /// Where the search for a ban to evict continues.
    eviction_position: Option<u32>,
    /// When the first ban is to be forgotten, among the bans seen since the start of the table.
    earliest_ns: u64,
    /// No ban in the table is to be forgotten before this time.
    quiet_until_ns: u64,
    /// `None`: the daemon shares no bans.
    journal: Option<Journal>,
}

impl BanIndex {
    /// Opens the bans of a table at the time `now_ns`, in nanoseconds of the decision's clock. Counts them first if a
    /// policy has brought another table.
    pub(crate) fn open<'s, T: BanTable>(
        &'s mut self,
        table: &'s T,
        now_ns: u64,
    ) -> Result<Bans<'s, T>, DatapathError> {
        let id = table.id()?;
        if self.counted != Some(id) {
            self.count(table, now_ns)?;
            self.counted = Some(id);
        }
        for (origin_kind, count) in self.tally.advance(now_ns) {
            self.done.entry(origin_kind).or_default().ended += u64::from(count);
        }
        Ok(Bans {
            ban_index: self,
            table,
            now_ns,
            is_journaled: true,
        })
    }

    /// Starts the journal, which notifies `written` of each entry.
    pub(crate) fn keep_journal(&mut self, written: Arc<Notify>) {
        self.journal = Some(Journal::new(written));
    }

    /// Takes the journal's entries, oldest first, and the number of lost ones.
    pub(crate) fn take_changes(&mut self) -> (Vec<JournalEntry>, u64) {
        (self.journal.as_mut()).map_or_else(|| (Vec::new(), 0), Journal::take)
    }

    /// The number of bans that held, by family, at the last opening; an ended ban counts for up to a second more.
    pub(crate) fn holding(&self) -> [u32; 2] {
        sum(self.tally.holding().values())
    }

    pub(crate) fn counts(&self) -> BanCounts {
        BanCounts {
            holding: self.tally.holding().clone(),
            done: self.done.clone(),
        }
    }

    /// Makes sure that a new or moved ban is forgotten when due, even if the current pass of the search has missed
    /// it.
    fn expect_expiry(&mut self, ban: &Ban) {
        let forgotten_at = forgotten_at(ban);
        self.earliest_ns = self.earliest_ns.min(forgotten_at);
        self.quiet_until_ns = self.quiet_until_ns.min(forgotten_at);
    }

    fn count(&mut self, table: &impl BanTable, now_ns: u64) -> Result<(), DatapathError> {
        self.counted = None;
        self.changes += 1;
        self.position = None;
        self.eviction_position = None;
        self.earliest_ns = u64::MAX;
        self.quiet_until_ns = 0;
        self.tally = Tally::default();
        self.tally.advance(now_ns);
        let mut some = Vec::new();
        let mut position = None;
        // Few prefixes have several bans.
        let mut several = HashSet::new();
        loop {
            position = table.read_some(position, &mut some)?;
            for (key, ban) in some.drain(..) {
                self.tally.add(&key, &ban);
                if key.position() != BanKey::FRONT {
                    several.insert(key.at(BanKey::FRONT));
                }
            }
            if position.is_none() {
                break;
            }
        }
        for key in several {
            for ban in prefix::repair(table, &key)? {
                self.tally.remove(&key, &ban);
            }
        }
        table.keep_lengths(self.tally.lengths())?;
        self.removed = 0;
        table.clear_filter()?;
        table.repair_hits()
    }
}

/// A table's bans at one time, with exclusive access.
pub(crate) struct Bans<'s, T> {
    ban_index: &'s mut BanIndex,
    table: &'s T,
    now_ns: u64,
    /// Whether changes go to the journal.
    is_journaled: bool,
}

impl<T: BanTable> Bans<'_, T> {
    /// Returns a number that grows with each change of the table.
    pub(crate) const fn changes(&self) -> u64 {
        self.ban_index.changes
    }

    /// Keeps the following changes out of the journal: they came from other nodes, or concern this host alone.
    pub(crate) const fn skip_journal(&mut self) {
        self.is_journaled = false;
    }

    /// Bans a prefix; replaces the ban of the same origin.
    pub(crate) fn ban(&mut self, new: &NewBan) -> Result<BanEffects, BanError> {
        let key = key(new.prefix).ok_or(BanError::Everybody)?;
        let first = new.first(self.now_ns)?;
        let is_own = |other: &Ban| other.is_of_origin_of(&first);
        let before = prefix::read(self.table, &key)?.into_iter().find(is_own);
        let evicted = match before {
            Some(_) => None,
            None => self.make_room(&key, first.is_automatic())?,
        };
        let ban = Ban {
            times: before.map_or(1, |before| before.times.saturating_add(1)),
            ..first
        };
        // Read only now: making room may have removed some of them.
        let present = prefix::read(self.table, &key)?;
        self.ban_index.changes += 1;
        prefix::write(self.table, &key, with(&present, ban))?;
        if let Some(before) = &before {
            self.ban_index.tally.remove(&key, before);
        }
        self.ban_index.tally.add(&key, &ban);
        let others = present.iter().filter(|other| !is_own(other));
        for moved in others.clone().chain([&ban]) {
            self.ban_index.expect_expiry(moved);
        }
        self.done(&ban).made += 1;
        self.write_journal(&key, &ban, false);
        let last = others.max_by_key(|other| other.until_ns).copied();
        Ok(BanEffects {
            ban,
            replaced: before.filter(|before| before.holds(self.now_ns)),
            outlasted_by: last.filter(|last| last.until_ns > ban.until_ns),
            evicted,
        })
    }

    /// Bans a prefix; `None`: its origin has a ban of it that ends no earlier.
    pub(crate) fn lengthen(&mut self, new: &NewBan) -> Result<Option<BanEffects>, BanError> {
        let first = new.first(self.now_ns)?;
        let mut present = self.bans_of(new.prefix)?.into_iter();
        if present.any(|own| own.is_of_origin_of(&first) && own.until_ns >= first.until_ns) {
            return Ok(None);
        }
        self.ban(new).map(Some)
    }

    /// Lifts the bans of exactly this prefix, or an origin's, and resets the count of its bans. Returns the bans that
    /// held.
    pub(crate) fn unban(
        &mut self,
        prefix: IpNet,
        origin: Option<&Origin>,
    ) -> Result<Vec<Ban>, DatapathError> {
        let Some(key) = key(prefix) else {
            return Ok(Vec::new());
        };
        self.lift(&key, |ban| origin.is_none_or(|origin| origin.has_made(ban)))
    }

    /// Lifts and forgets the chosen bans among the next some thousand. Returns how many held, and where to continue;
    /// `None` at the end.
    pub(crate) fn unban_some(
        &mut self,
        position: Option<u32>,
        is_chosen: impl Fn(IpNet, &Ban) -> bool,
    ) -> Result<(u32, Option<u32>), DatapathError> {
        let mut some = Vec::new();
        let next = self.table.read_some(position, &mut some)?;
        some.retain(|(key, ban)| is_chosen(prefix_of(key), ban));
        let mut lifted = 0;
        for (key, _) in some {
            // All at once: a ban that moves to a freed position may land behind the position of the search.
            let held = self.lift(&key, |ban| is_chosen(prefix_of(&key), ban))?;
            lifted += u32::try_from(held.len()).unwrap_or(u32::MAX);
        }
        Ok((lifted, next))
    }

    /// Lifts and forgets all chosen bans; returns how many held.
    pub(crate) fn unban_chosen(
        &mut self,
        is_chosen: impl Fn(IpNet, &Ban) -> bool,
    ) -> Result<u32, DatapathError> {
        let (mut lifted, mut position) = (0, None);
        loop {
            let (some, next) = self.unban_some(position, &is_chosen)?;
            lifted += some;
            position = next;
            if position.is_none() {
                return Ok(lifted);
            }
        }
    }

    /// Returns the bans of exactly this prefix, including ended bans that are remembered. The ban that ends last
    /// comes first.
    pub(crate) fn bans_of(&self, prefix: IpNet) -> Result<Vec<Ban>, DatapathError> {
        key(prefix).map_or(Ok(Vec::new()), |key| prefix::read(self.table, &key))
    }

    /// Forgets the due bans among the next some thousand, if any ban may be due.
    pub(crate) fn sweep(&mut self) -> Result<(), DatapathError> {
        let now_ns = self.now_ns;
        if self.ban_index.tally.ended() > 0 && now_ns >= self.ban_index.quiet_until_ns {
            self.forget_some(|ban| now_ns >= forgotten_at(ban))?;
        }
        Ok(())
    }

    /// Makes room for another origin's ban of a prefix by forgetting ended bans. If there are none, a ban by hand
    /// evicts an automatic ban that holds, and returns it.
    fn make_room(
        &mut self,
        key: &BanKey,
        is_automatic: bool,
    ) -> Result<Option<(IpNet, Ban)>, BanError> {
        if is_automatic {
            self.make_automatic_room()?;
        }
        let now_ns = self.now_ns;
        let present = prefix::read(self.table, key)?;
        if present.len() >= MOST_ORIGINS {
            let over = present.iter().find(|ban| !ban.holds(now_ns));
            self.remove(key, over.ok_or(BanError::TooManyOrigins)?)?;
        }
        let capacity = self.table.capacity()?;
        if self.ban_index.tally.entries() < capacity {
            return Ok(None);
        }
        let forgotten = self.forget_until_found(Tally::ended, |ban| !ban.holds(now_ns))?;
        if forgotten {
            return Ok(None);
        }
        let evicted = if is_automatic { None } else { self.evict()? };
        evicted.map(Some).ok_or(BanError::Full { capacity })
    }

    /// Forgets ended automatic bans if limits have made as many as they may. This keeps room for bans by hand,
    /// however many sources an attacker forges.
    fn make_automatic_room(&mut self) -> Result<(), BanError> {
        let capacity = self.table.capacity()?;
        let most = capacity - capacity / KEPT_PART;
        if self.ban_index.tally.automatic() < most {
            return Ok(());
        }
        let now_ns = self.now_ns;
        let is_over = |ban: &Ban| ban.is_automatic() && !ban.holds(now_ns);
        if self.forget_until_found(Tally::automatic_ended, is_over)? {
            return Ok(());
        }
        Err(BanError::FullOfAutomatic { most })
    }

    /// Searches the table until it has removed some chosen bans; returns whether it has. `left` counts the remaining
    /// candidates.
    fn forget_until_found(
        &mut self,
        left: fn(&Tally) -> u32,
        is_chosen: impl Fn(&Ban) -> bool,
    ) -> Result<bool, DatapathError> {
        // Passes two ends of the table, as it starts in the middle.
        let mut ends = 0;
        while left(&self.ban_index.tally) > 0 && ends < 2 {
            if self.forget_some(&is_chosen)? > 0 {
                return Ok(true);
            }
            ends += u32::from(self.ban_index.position.is_none());
        }
        Ok(false)
    }

    /// Lifts the automatic ban that ends first among the next some thousand bans.
    fn evict(&mut self) -> Result<Option<(IpNet, Ban)>, DatapathError> {
        // Passes two ends of the table, as it starts in the middle.
        let mut ends = 0;
        while self.ban_index.tally.automatic() > 0 && ends < 2 {
            let mut some = Vec::new();
            let next = self
                .table
                .read_some(self.ban_index.eviction_position, &mut some)?;
            some.retain(|(_, ban)| ban.is_automatic());
            if let Some((key, ban)) = some.into_iter().min_by_key(|(_, ban)| ban.until_ns) {
                self.remove(&key, &ban)?;
                self.done(&ban).evicted += 1;
                return Ok(Some((prefix_of(&key), ban)));
            }
            self.ban_index.eviction_position = next;
            ends += u32::from(next.is_none());
        }
        Ok(None)
    }

    /// Removes the chosen bans among the next some thousand; returns their number.
    fn forget_some(&mut self, is_chosen: impl Fn(&Ban) -> bool) -> Result<usize, DatapathError> {
        let mut some = Vec::new();
        self.ban_index.position = self.table.read_some(self.ban_index.position, &mut some)?;
        let mut forgotten = 0;
        for (key, ban) in &some {
            if is_chosen(ban) {
                self.remove(key, ban)?;
                forgotten += 1;
            } else {
                self.ban_index.earliest_ns = self.ban_index.earliest_ns.min(forgotten_at(ban));
            }
        }
        if self.ban_index.position.is_none() {
            self.ban_index.quiet_until_ns = mem::replace(&mut self.ban_index.earliest_ns, u64::MAX);
        }
        Ok(forgotten)
    }

    /// Lifts and forgets the chosen bans of a prefix; returns the bans that held.
    fn lift(
        &mut self,
        key: &BanKey,
        is_chosen: impl Fn(&Ban) -> bool,
    ) -> Result<Vec<Ban>, DatapathError> {
        let mut bans = prefix::read(self.table, key)?;
        bans.retain(is_chosen);
        for ban in &bans {
            self.remove(key, ban)?;
        }
        bans.retain(|ban| ban.holds(self.now_ns));
        for ban in &bans {
            self.done(ban).lifted += 1;
            self.write_journal(key, ban, true);
        }
        Ok(bans)
    }

    /// Removes the ban of a prefix that has the same origin.
    fn remove(&mut self, key: &BanKey, ban: &Ban) -> Result<(), DatapathError> {
        let present = prefix::read(self.table, key)?;
        let mut bans = present.iter();
        let Some(position) = bans.position(|other| other.is_of_origin_of(ban)) else {
            return Ok(());
        };
        self.ban_index.changes += 1;
        prefix::write(self.table, key, without(&present, position))?;
        let others = present.iter().filter(|other| !other.is_of_origin_of(ban));
        others.for_each(|moved| self.ban_index.expect_expiry(moved));
        if self.ban_index.tally.remove(key, &present[position]) {
            // Only after the removal: look-ups need a length as long as a ban has it.
            self.table.keep_lengths(self.ban_index.tally.lengths())?;
        }
        self.ban_index.removed += 1;
        // Clearing reads all remaining bans, but so rarely that it costs little beside the removals.
        if self.ban_index.removed > MOST_REMOVED.max(self.ban_index.tally.entries()) {
            self.table.clear_filter()?;
            self.ban_index.removed = 0;
        }
        Ok(())
    }

    fn write_journal(&mut self, key: &BanKey, ban: &Ban, is_lifted: bool) {
        if let Some(journal) = self
            .ban_index
            .journal
            .as_mut()
            .filter(|_| self.is_journaled)
        {
            journal.write(JournalEntry {
                prefix: prefix_of(key),
                ban: *ban,
                is_lifted,
            });
        }
    }

    fn done(&mut self, ban: &Ban) -> &mut BanTotals {
        self.ban_index.done.entry(OriginKind::of(ban)).or_default()
    }
}

fn sum<'n>(numbers: impl Iterator<Item = &'n [u32; 2]>) -> [u32; 2] {
    numbers.fold([0; 2], |[v4, v6], more| [v4 + more[0], v6 + more[1]])
}

/// Returns a prefix's key; `None`: the prefix is all addresses.
fn key(prefix: IpNet) -> Option<BanKey> {
    let address = Address::from(prefix.addr());
    (prefix.prefix_len() > 0).then(|| BanKey::new(&address, prefix.prefix_len()))
}

#[cfg(test)]
mod tests;
