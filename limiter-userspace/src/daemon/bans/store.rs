//! Makes, lifts and forgets bans, in the table, which alone holds them, and in the counts of it.

use std::{collections::BTreeMap, mem};

use ipnet::IpNet;
use limiter_common::{
    address::Address,
    ban::{Ban, BanKey, FOREVER, MAX_REASON},
    limit::LimitId,
};
use limiter_datapath::kernel::DatapathError;
use limiter_policy::policy::bans::{forgotten_at, prefix_of};
use thiserror::Error;

use super::{
    table::BanTable,
    tally::{Origin, Tally},
};
use crate::protocol::bans::BanReason;

/// How many bans may be removed before the filter is cleared of them; as many as are left in the
/// table, if these are more.
const MOST_REMOVED: u32 = 10_000;

/// One part in so many of the table is reserved for bans by hand.
const KEPT_PART: u32 = 4;

/// A prefix was not banned; nothing has changed.
#[derive(Debug, Error)]
pub(in crate::daemon) enum BanError {
    /// The prefix length is 0.
    #[error("a prefix of length 0 would ban everybody")]
    Everybody,
    /// As many bans hold as there may be.
    #[error(
        "there is no room for more than {capacity} bans: raise `bans: {{capacity: …}}`, or lift some"
    )]
    Full {
        /// How many there may be.
        capacity: u32,
    },
    /// As many of limits' bans hold as there may be.
    #[error(
        "there is no room for more than {most} automatic bans, because the rest is reserved for bans \
         by hand: raise `bans: {{capacity: …}}`"
    )]
    FullOfAutomatic {
        /// How many bans limits may make.
        most: u32,
    },
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// A ban to be made.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct NewBan {
    /// The prefix to ban.
    pub(in crate::daemon) prefix: IpNet,
    /// How long, in nanoseconds; `None`: until it is lifted.
    pub(in crate::daemon) for_ns: Option<u64>,
    /// Why.
    pub(in crate::daemon) reason: BanReason,
    /// The limit that bans; `None`: an operator does.
    pub(in crate::daemon) limit: Option<LimitId>,
}

/// A ban that was made.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Banned {
    /// The ban as it is in the table.
    pub(in crate::daemon) ban: Ban,
    /// The ban that held until then.
    pub(in crate::daemon) replaced: Option<Ban>,
    /// A limit's ban of another prefix, lifted to make room.
    pub(in crate::daemon) evicted: Option<(IpNet, Ban)>,
}

/// Counts of what was done with bans of one limit, or of operators, since the daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BansDone {
    /// Bans made, including those that replaced another.
    pub made: u64,
    /// Bans that were lifted.
    pub lifted: u64,
    /// Bans that ended by themselves.
    pub ended: u64,
    /// Bans lifted to make room for one by hand.
    pub evicted: u64,
}

/// How many bans there are, and what was done with them since the daemon started.
#[derive(Clone, Debug, Default)]
pub struct BanCounts {
    /// How many hold, by family, as of a second ago at most.
    pub holding: [u32; 2],
    done: BTreeMap<Origin, BansDone>,
}

impl BanCounts {
    /// Returns what was done with the bans of a limit; `None`: of operators.
    #[must_use]
    pub fn done(&self, limit: Option<LimitId>) -> BansDone {
        let done = self.done.get(&origin(limit));
        done.copied().unwrap_or_default()
    }
}

/// Returns the number that stands for a limit, or for operators, in a ban.
fn origin(limit: Option<LimitId>) -> Origin {
    limit.map_or(Ban::BY_HAND, |limit| limit.0)
}

/// The counts and positions kept beside a table of bans.
#[derive(Debug, Default)]
pub(in crate::daemon) struct BanStore {
    /// The number of the table that was counted; `None`: none yet.
    counted: Option<u32>,
    tally: Tally,
    done: BTreeMap<Origin, BansDone>,
    /// How many were removed since the filter was cleared.
    removed: u32,
    /// How far the search for ended bans has come.
    position: Option<u32>,
    /// Where the last ban that gave way was found.
    gave_way: Option<u32>,
    /// When the first ban is to be forgotten, among those seen since the start of the table.
    earliest_ns: u64,
    /// Before this time no ban in the table is to be forgotten.
    quiet_until_ns: u64,
}

impl BanStore {
    /// Opens the bans of a table at the time `now_ns`, in nanoseconds of the decision's clock.
    /// Counts them first if that has not been done: a policy may have brought another table.
    pub(in crate::daemon) fn open<'s, T: BanTable>(
        &'s mut self,
        table: &'s T,
        now_ns: u64,
    ) -> Result<Bans<'s, T>, DatapathError> {
        let id = table.id()?;
        if self.counted != Some(id) {
            self.count(table, now_ns)?;
            self.counted = Some(id);
        }
        for (origin, count) in self.tally.advance(now_ns) {
            self.done.entry(origin).or_default().ended += u64::from(count);
        }
        Ok(Bans {
            store: self,
            table,
            now_ns,
        })
    }

    /// Returns how many bans held, by family, when they were last opened; an ended ban counts for
    /// up to a second more.
    pub(in crate::daemon) const fn holding(&self) -> [u32; 2] {
        self.tally.holding()
    }

    /// Returns the same, and what was done.
    pub(in crate::daemon) fn counts(&self) -> BanCounts {
        BanCounts {
            holding: self.holding(),
            done: self.done.clone(),
        }
    }

    fn count(&mut self, table: &impl BanTable, now_ns: u64) -> Result<(), DatapathError> {
        self.counted = None;
        self.position = None;
        self.gave_way = None;
        self.earliest_ns = u64::MAX;
        self.quiet_until_ns = 0;
        self.tally = Tally::default();
        self.tally.advance(now_ns);
        let mut some = Vec::new();
        let mut position = None;
        loop {
            position = table.read_some(position, &mut some)?;
            for (key, ban) in some.drain(..) {
                self.tally.add(&key, &ban);
            }
            if position.is_none() {
                break;
            }
        }
        table.keep_lengths(self.tally.lengths())?;
        self.removed = 0;
        table.clear_filter()
    }
}

/// A table's bans at one time. Nobody else changes them meanwhile.
pub(in crate::daemon) struct Bans<'s, T> {
    store: &'s mut BanStore,
    table: &'s T,
    now_ns: u64,
}

impl<T: BanTable> Bans<'_, T> {
    /// Bans a prefix; replaces a ban that it has.
    pub(in crate::daemon) fn ban(&mut self, new: &NewBan) -> Result<Banned, BanError> {
        let key = key(new.prefix).ok_or(BanError::Everybody)?;
        let before = self.remembered(new.prefix)?;
        if new.limit.is_some() && !before.is_some_and(|before| before.is_automatic()) {
            self.make_automatic_room()?;
        }
        let evicted = match before {
            Some(_) => None,
            None => self.make_room(new.limit.is_none())?,
        };
        let mut reason = [0; MAX_REASON];
        let text = new.reason.as_str().as_bytes();
        reason[..text.len()].copy_from_slice(text);
        let ban = Ban {
            until_ns: new
                .for_ns
                .map_or(FOREVER, |for_ns| self.now_ns.saturating_add(for_ns)),
            since_ns: self.now_ns,
            times: before.map_or(1, |before| before.times.saturating_add(1)),
            limit: origin(new.limit),
            reason_length: u32::try_from(text.len()).unwrap_or_default(),
            reason,
        };
        self.table.insert(key, ban)?;
        if let Some(before) = &before {
            self.store.tally.remove(&key, before);
        }
        self.store.tally.add(&key, &ban);
        let forgotten_at = forgotten_at(&ban);
        self.store.earliest_ns = self.store.earliest_ns.min(forgotten_at);
        self.store.quiet_until_ns = self.store.quiet_until_ns.min(forgotten_at);
        self.done(&ban).made += 1;
        Ok(Banned {
            ban,
            replaced: before.filter(|before| before.holds(self.now_ns)),
            evicted,
        })
    }

    /// Lifts the ban of exactly this prefix and forgets how often it was banned. Returns the ban;
    /// `None`: none held.
    pub(in crate::daemon) fn unban(&mut self, prefix: IpNet) -> Result<Option<Ban>, DatapathError> {
        let Some(key) = key(prefix) else {
            return Ok(None);
        };
        let Some(ban) = self.table.get(&key)? else {
            return Ok(None);
        };
        self.remove(&key, &ban)?;
        let held = Some(ban).filter(|ban| ban.holds(self.now_ns));
        if held.is_some() {
            self.done(&ban).lifted += 1;
        }
        Ok(held)
    }

    /// Lifts and forgets some thousand bans; returns how many held. `None`: none are left.
    pub(in crate::daemon) fn unban_some(&mut self) -> Result<Option<u32>, DatapathError> {
        let mut some = Vec::new();
        self.table.read_some(None, &mut some)?;
        if some.is_empty() {
            return Ok(None);
        }
        let mut lifted = 0;
        for (key, ban) in some {
            self.remove(&key, &ban)?;
            if ban.holds(self.now_ns) {
                self.done(&ban).lifted += 1;
                lifted += 1;
            }
        }
        Ok(Some(lifted))
    }

    /// Lifts and forgets all chosen bans; returns how many held.
    pub(in crate::daemon) fn unban_chosen(
        &mut self,
        is_chosen: impl Fn(IpNet, &Ban) -> bool,
    ) -> Result<u32, DatapathError> {
        let (mut lifted, mut position) = (0, None);
        loop {
            let mut some = Vec::new();
            position = self.table.read_some(position, &mut some)?;
            some.retain(|(key, ban)| is_chosen(prefix_of(key), ban));
            for (key, _) in some {
                lifted += u32::from(self.unban(prefix_of(&key))?.is_some());
            }
            if position.is_none() {
                return Ok(lifted);
            }
        }
    }

    /// Returns the ban of exactly this prefix, also one that has ended and is remembered.
    pub(in crate::daemon) fn remembered(
        &self,
        prefix: IpNet,
    ) -> Result<Option<Ban>, DatapathError> {
        key(prefix).map_or(Ok(None), |key| self.table.get(&key))
    }

    /// Forgets the ended bans that are due, among the next some thousand. Does nothing if none is
    /// due.
    pub(in crate::daemon) fn sweep(&mut self) -> Result<(), DatapathError> {
        let now_ns = self.now_ns;
        if self.store.tally.ended() > 0 && now_ns >= self.store.quiet_until_ns {
            self.forget_some(|ban| now_ns >= forgotten_at(ban))?;
        }
        Ok(())
    }

    /// If the table is full, forgets ended bans that were to be remembered. If there are none, a
    /// limit's ban that holds gives way to a ban by hand, and is returned.
    fn make_room(&mut self, by_hand: bool) -> Result<Option<(IpNet, Ban)>, BanError> {
        let capacity = self.table.capacity()?;
        if self.store.tally.entries() < capacity {
            return Ok(None);
        }
        let now_ns = self.now_ns;
        let forgotten = self.forget_until_found(Tally::ended, |ban| !ban.holds(now_ns))?;
        if forgotten {
            return Ok(None);
        }
        let evicted = if by_hand { self.evict()? } else { None };
        evicted.map(Some).ok_or(BanError::Full { capacity })
    }

    /// If limits have made as many bans as they may, forgets those that have ended. So bans by hand
    /// have room, however many sources somebody forges.
    fn make_automatic_room(&mut self) -> Result<(), BanError> {
        let capacity = self.table.capacity()?;
        let most = capacity - capacity / KEPT_PART;
        if self.store.tally.automatic() < most {
            return Ok(());
        }
        let now_ns = self.now_ns;
        let is_over = |ban: &Ban| ban.is_automatic() && !ban.holds(now_ns);
        if self.forget_until_found(Tally::automatic_ended, is_over)? {
            return Ok(());
        }
        Err(BanError::FullOfAutomatic { most })
    }

    /// Looks through the table until it has removed some chosen bans; returns whether it has.
    /// `left`: counts the candidates that remain.
    fn forget_until_found(
        &mut self,
        left: fn(&Tally) -> u32,
        is_chosen: impl Fn(&Ban) -> bool,
    ) -> Result<bool, DatapathError> {
        // Two ends, because it begins amid the table.
        let mut ends = 0;
        while left(&self.store.tally) > 0 && ends < 2 {
            if self.forget_some(&is_chosen)? > 0 {
                return Ok(true);
            }
            ends += u32::from(self.store.position.is_none());
        }
        Ok(false)
    }

    /// Lifts the limit's ban that would end first among the next some thousand bans.
    fn evict(&mut self) -> Result<Option<(IpNet, Ban)>, DatapathError> {
        // Two ends, because it begins amid the table.
        let mut ends = 0;
        while self.store.tally.automatic() > 0 && ends < 2 {
            let mut some = Vec::new();
            let next = self.table.read_some(self.store.gave_way, &mut some)?;
            some.retain(|(_, ban)| ban.is_automatic());
            if let Some((key, ban)) = some.into_iter().min_by_key(|(_, ban)| ban.until_ns) {
                self.remove(&key, &ban)?;
                self.done(&ban).evicted += 1;
                return Ok(Some((prefix_of(&key), ban)));
            }
            self.store.gave_way = next;
            ends += u32::from(next.is_none());
        }
        Ok(None)
    }

    /// Removes the chosen bans among the next some thousand; returns how many.
    fn forget_some(&mut self, is_chosen: impl Fn(&Ban) -> bool) -> Result<usize, DatapathError> {
        let mut some = Vec::new();
        self.store.position = self.table.read_some(self.store.position, &mut some)?;
        let mut forgotten = 0;
        for (key, ban) in &some {
            if is_chosen(ban) {
                self.remove(key, ban)?;
                forgotten += 1;
            } else {
                self.store.earliest_ns = self.store.earliest_ns.min(forgotten_at(ban));
            }
        }
        if self.store.position.is_none() {
            self.store.quiet_until_ns = mem::replace(&mut self.store.earliest_ns, u64::MAX);
        }
        Ok(forgotten)
    }

    fn remove(&mut self, key: &BanKey, ban: &Ban) -> Result<(), DatapathError> {
        self.table.remove(key)?;
        if self.store.tally.remove(key, ban) {
            // Afterwards: a length is looked for as long as it has a ban.
            self.table.keep_lengths(self.store.tally.lengths())?;
        }
        self.store.removed += 1;
        // Reads all that are left, but so seldom that it costs little beside their removals.
        if self.store.removed > MOST_REMOVED.max(self.store.tally.entries()) {
            self.table.clear_filter()?;
            self.store.removed = 0;
        }
        Ok(())
    }

    fn done(&mut self, ban: &Ban) -> &mut BansDone {
        self.store.done.entry(ban.limit).or_default()
    }
}

/// Returns a prefix's key; `None`: it is everybody.
fn key(prefix: IpNet) -> Option<BanKey> {
    let address = Address::from(prefix.addr());
    (prefix.prefix_len() > 0).then(|| BanKey::new(&address, prefix.prefix_len()))
}

#[cfg(test)]
mod tests;
