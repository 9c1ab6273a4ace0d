//! Automatic bans: decides which offenders a limit's `ban` bans.
//!
//! A [`Decider`] receives the records of the offenders, poll after poll, with the time. It adds an offender's drops
//! since the last poll to a window of ten slices. So, if a poll comes every `i` and finds all drops,
//!
//! * a source is banned only after `after` drops within some `within` + `i`, and
//! * a source with `after` drops within nine tenths of `within` is banned at the next poll.
//!
//! The records of offenders are lower bounds: drops may be skipped, and offenders forgotten. Then a source is banned
//! later or not at all; none is banned for drops that were not its own. If more than `within` is between two polls,
//! the times of the drops in between are unknown: only as many are counted as some `within` in it must have had.

mod counting;
mod offence;
mod offences;
mod ranges;
mod subject;
#[cfg(test)]
mod tests;
mod window;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    mem,
    net::IpAddr,
    time::Duration,
};

use limiter_common::{
    address::Family,
    ban::BanKey,
    limit::LimitId,
    offender::{Offender, OffenderKey},
    strategy::gcra::Gcra,
};
use limiter_policy::policy::{AutomaticBan, BanOnly, Mode, Policy};

pub use self::{offence::Offence, subject::Subject};
use self::{
    ranges::{Members, around, is_range},
    window::{SLICES, Window},
};

/// The most bans in a second, and at once; the rest waits for the next poll.
pub const BANS_PER_SECOND: u64 = 1_000;

const BUDGET: Gcra = Gcra::new(BANS_PER_SECOND, BANS_PER_SECOND, 1_000_000_000)
    .expect("a limit that a configuration could have");

/// How long the decider ignores a source that must not be banned: the reason may be gone soon.
pub const REFUSED_NS: u64 = 10_000_000_000;

/// The most sources set aside, and the most ranges taken apart. The next poll finds sources beyond this again, so
/// none is lost.
const MOST_IGNORED: usize = 1 << 16;

/// The longest time between two polls, which otherwise come every tenth of the shortest `within`.
const LONGEST_INTERVAL: Duration = Duration::from_secs(1);

/// The result of a poll.
#[derive(Debug, Default)]
pub struct DueBans {
    /// The sources to ban now, most drops first.
    pub offences: Vec<Offence>,
    /// The number of sources that each limit bans only later, because of [`BANS_PER_SECOND`].
    pub delayed: BTreeMap<LimitId, u64>,
    /// The number of sources that each limit does not ban, because it bans [only proven ones](BanOnly::Proven).
    pub unproven: BTreeMap<LimitId, u64>,
}

/// Decides which sources to ban; by default none. Times are in nanoseconds of the decision's clock.
///
/// Memory is bounded: some hundred bytes for each remembered offender, fewer than `range-after` members for each
/// range that has banned ones, and [`MOST_IGNORED`] sources set aside and as many ranges refused.
#[derive(Debug, Default)]
pub struct Decider {
    /// The terms of the limits that ban, by their interned ids.
    terms: BTreeMap<u16, AutomaticBan>,
    sources: HashMap<OffenderKey, Source>,
    members: Members,
    /// Sources with drops that do not count, until the given time.
    ignored: HashMap<Subject, u64>,
    /// Ranges that are not banned as one, until the given time.
    ungrouped: HashMap<Subject, u64>,
    /// Whether the next poll may find an offence without new drops.
    is_unfinished: bool,
    /// When the allowance of bans is full again: its TAT.
    full_again_ns: u64,
    /// When the last poll was.
    polled_ns: u64,
    /// When the offenders were last read.
    read_ns: u64,
}

#[derive(Debug, Default)]
struct Source {
    /// Its recorded drops at the last poll.
    drops: u64,
    /// The time of its first drop.
    first_drop_ns: u64,
    window: Window,
}

impl Decider {
    /// Continues with the limits of a policy. Drops stay counted for a limit with the same `within`. If no limit had
    /// a `ban` before, drops count from now on.
    pub fn adopt(&mut self, policy: &Policy, now_ns: u64) {
        let limits = policy.limits.iter();
        let enforcing = limits.filter(|limit| limit.mode == Mode::Enforce);
        let terms: BTreeMap<_, _> = enforcing
            .filter_map(|limit| Some((limit.id.0, limit.ban?)))
            .collect();
        let before = mem::replace(&mut self.terms, terms);
        if before.is_empty() {
            self.polled_ns = now_ns;
            self.read_ns = now_ns;
        }
        let within = |terms: &BTreeMap<u16, AutomaticBan>, limit: u16| {
            terms.get(&limit).map(|terms| terms.within_ns)
        };
        let terms = &self.terms;
        self.sources
            .retain(|key, _| within(terms, key.limit) == within(&before, key.limit));
    }

    /// Returns the terms of a limit's bans; `None`: it does not ban.
    #[must_use]
    pub fn terms(&self, limit: LimitId) -> Option<&AutomaticBan> {
        self.terms.get(&limit.0)
    }

    /// Returns the limits that ban.
    pub fn limits(&self) -> impl Iterator<Item = LimitId> {
        self.terms.keys().copied().map(LimitId)
    }

    /// Returns the time from one poll to the next; `None`: no limit bans.
    #[must_use]
    pub fn interval(&self) -> Option<Duration> {
        let slices = self.terms.values().map(slice_ns);
        let interval = slices.min().map(Duration::from_nanos);
        interval.map(|interval| interval.min(LONGEST_INTERVAL))
    }

    /// Returns whether the next poll may find an offence without new drops.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    /// Records a poll of limits that have dropped nothing since the last one.
    pub const fn nothing_new(&mut self, now_ns: u64) {
        self.polled_ns = now_ns;
    }

    /// Polls the offenders. The same key may come several times, from several interfaces. `is_proven` returns
    /// whether a prefix is a single source that is proven now, even if only recently.
    pub fn decide<E>(
        &mut self,
        now_ns: u64,
        offenders: impl IntoIterator<Item = (OffenderKey, Offender)>,
        is_proven: impl Fn(&BanKey) -> Result<bool, E>,
    ) -> Result<DueBans, E> {
        self.add(now_ns, offenders);
        self.members.end(now_ns);
        let mut offences = self.offences(now_ns);
        offences.sort_unstable_by_key(|offence| {
            let Subject { limit, prefix } = offence.subject;
            // The fields behind the drops make the order reproducible.
            let order = (IpAddr::from(prefix.address()), prefix.prefix_length());
            (Reverse(offence.drops), limit, order)
        });
        let mut due = DueBans::default();
        self.is_unfinished = false;
        for offence in offences {
            let may_be_banned = if self.is_only_for_proven(&offence) {
                let is_proven = is_proven(&offence.prefix());
                // Their standing could not be read now, so the next poll retries these sources.
                self.is_unfinished |= is_proven.is_err();
                is_proven?
            } else {
                true
            };
            // Checked first, so that a flood of forged sources takes no allowance.
            if !may_be_banned {
                *due.unproven.entry(offence.limit()).or_default() += 1;
                self.refused(&offence, now_ns.saturating_add(REFUSED_NS));
            } else if BUDGET.take(now_ns, &mut self.full_again_ns) {
                due.offences.push(offence);
            } else {
                *due.delayed.entry(offence.limit()).or_default() += 1;
            }
        }
        self.is_unfinished |= !due.delayed.is_empty();
        Ok(due)
    }

    fn is_only_for_proven(&self, offence: &Offence) -> bool {
        let terms = self.terms(offence.limit());
        terms.is_some_and(|terms| terms.only == Some(BanOnly::Proven))
    }

    /// Records that a source found by the last poll is banned until `until_ns`. Returns the banned prefixes that are
    /// part of it: their bans are no longer needed.
    pub fn banned(&mut self, offence: &Offence, until_ns: u64) -> Vec<BanKey> {
        // Drops before the ban came into force are in the next poll.
        self.ignore(offence, self.read_ns.saturating_add(1));
        // The members of a range that is not banned as one are of no use.
        let range = around(&offence.subject).filter(|range| !self.ungrouped.contains_key(range));
        if let Some(range) = range {
            self.members.add(range, offence.prefix(), until_ns);
        }
        self.members.take(&offence.subject)
    }

    /// Records that a source found by the last poll is not banned; no poll finds it before `until_ns`.
    pub fn ignore(&mut self, offence: &Offence, until_ns: u64) {
        insert(&mut self.ignored, offence.subject, until_ns);
    }

    /// Defers the bans that the last poll found: the next poll finds them again.
    pub const fn defer(&mut self) {
        self.is_unfinished = true;
    }

    /// Records that a source found by the last poll must not be banned; no poll finds it before `until_ns`. A range
    /// is refused because of one of its addresses, so the others are found one by one.
    pub fn refused(&mut self, offence: &Offence, until_ns: u64) {
        if is_range(&offence.prefix()) {
            insert(&mut self.ungrouped, offence.subject, until_ns);
            self.is_unfinished = true;
        } else {
            self.ignore(offence, until_ns);
        }
    }
}

/// Returns the length of a slice of the window.
const fn slice_ns(terms: &AutomaticBan) -> u64 {
    terms.within_ns / SLICES
}

/// Inserts the end of a subject's time, while there is room.
fn insert(recorded: &mut HashMap<Subject, u64>, subject: Subject, until_ns: u64) {
    if recorded.len() < MOST_IGNORED || recorded.contains_key(&subject) {
        recorded.insert(subject, until_ns);
    }
}

/// Returns an offender as a subject of one address.
const fn alone(key: &OffenderKey) -> Subject {
    let address = key.address();
    let length = match address.family {
        Family::V4 => 32,
        Family::V6 => 128,
    };
    Subject {
        limit: key.limit,
        prefix: BanKey::new(&address, length),
    }
}
