//! The record of one source: its worth, and its changes.

use super::{Standing, StandingContext, Tick};
use crate::numbered::numbered;

/// The record of a source, as one word.
///
/// From the lowest bit on: 3 bits for the number of its [`Kind`], 1 bit if the standing is fresh, 4 bits for the
/// occasions on which the source came, 28 bits for the tick of its last visit, 28 bits for the tick [`Self::since`]. 0:
/// an empty record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Record(pub u64);

numbered! {
    /// The kind of a record, before expiry is taken into account.
    pub enum Kind {
        /// An empty record.
        Nothing,
        /// The source came, but on too few occasions so far.
        Visited,
        /// The source came again after a refusal.
        Retried,
        /// The source came on enough occasions.
        Familiar,
        /// The source completed a handshake.
        Proven,
        /// An operator trusts the source.
        Trusted,
        /// Another node of the fleet reports the source as proven there.
        Reported,
    } else Nothing
}

const FRESH: u64 = 1 << 3;
const VISITS_SHIFT: u32 = 4;
const MOST_VISITS: u32 = 15;
const LAST_SHIFT: u32 = 8;
const KEPT: u64 = (1 << Tick::KEPT_BITS) - 1;
const SINCE_SHIFT: u32 = LAST_SHIFT + Tick::KEPT_BITS;

impl Record {
    /// The empty record.
    pub const NONE: Self = Self(0);

    /// The duration of a retried standing: ten minutes, in ticks.
    pub const RETRIED: u32 = 559;

    /// The longest duration of trust: four and a half years, in ticks.
    pub const LONGEST_TRUST: u32 = 1 << (Tick::KEPT_BITS - 1);

    /// Makes a record from its parts; only their lowest bits count.
    #[must_use]
    #[inline(always)]
    pub const fn new(kind: Kind, is_fresh: bool, visits: u32, last: Tick, since: Tick) -> Self {
        let visits = if visits > MOST_VISITS {
            MOST_VISITS
        } else {
            visits
        };
        let word = kind as u64
            | (visits as u64) << VISITS_SHIFT
            | (last.kept() as u64) << LAST_SHIFT
            | (since.kept() as u64) << SINCE_SHIFT;
        Self(if is_fresh { word | FRESH } else { word })
    }

    /// The kind, which may have expired.
    #[must_use]
    #[inline(always)]
    pub const fn kind(self) -> Kind {
        Kind::of_number((self.0 & 7) as u32)
    }

    /// Whether the standing was gained during a shortage, or so shortly before one that it counts as gained during it.
    #[must_use]
    #[inline(always)]
    pub const fn is_fresh(self) -> bool {
        self.0 & FRESH != 0
    }

    /// The number of occasions on which the source came, at most 15.
    #[must_use]
    #[inline(always)]
    pub const fn visits(self) -> u32 {
        (self.0 >> VISITS_SHIFT & 15) as u32
    }

    /// The kept tick of the last visit. In a reported record it is not a visit: it lies as long before the end of the
    /// other node's report as sources are remembered, so the record expires with the report.
    #[must_use]
    #[inline(always)]
    pub const fn last(self) -> u32 {
        (self.0 >> LAST_SHIFT & KEPT) as u32
    }

    /// A kept tick: the gain of the standing; for a visited source, its last occasion; for a retried or trusted source,
    /// the end of the standing.
    #[must_use]
    #[inline(always)]
    pub const fn since(self) -> u32 {
        (self.0 >> SINCE_SHIFT) as u32
    }

    /// Converts the record to another clock, which shows `to` when this one shows `from`. Records are saved by the wall
    /// clock and recalled after a restart.
    #[must_use]
    pub const fn by_clock(self, from: Tick, to: Tick) -> Self {
        let ahead = to.0.wrapping_sub(from.0);
        let last = Tick(self.last().wrapping_add(ahead));
        let since = Tick(self.since().wrapping_add(ahead));
        if matches!(self.kind(), Kind::Nothing) {
            return Self::NONE;
        }
        Self::new(self.kind(), self.is_fresh(), self.visits(), last, since)
    }

    /// The standing that the record gives its source.
    #[must_use]
    #[inline(always)]
    pub const fn standing(self, at: &StandingContext<'_>) -> Standing {
        let current = self.current(at);
        match current.kind() {
            Kind::Nothing | Kind::Visited => Standing::Unknown,
            Kind::Retried => Standing::Retried,
            Kind::Familiar | Kind::Proven | Kind::Reported if current.counts_as_fresh(at) => {
                Standing::Fresh
            }
            Kind::Familiar => Standing::Familiar,
            Kind::Proven | Kind::Trusted | Kind::Reported => Standing::Proven,
        }
    }

    /// The rank by which records keep their room: no record makes room for one of a lower rank. 0: an empty record. A
    /// reported record never displaces one from this host's own observations.
    #[must_use]
    #[inline(always)]
    pub const fn rank(self, at: &StandingContext<'_>) -> u32 {
        let current = self.current(at);
        match current.kind() {
            Kind::Nothing => 0,
            Kind::Visited => 1,
            Kind::Retried => 2,
            Kind::Reported if current.counts_as_fresh(at) => 3,
            Kind::Familiar | Kind::Proven if current.counts_as_fresh(at) => 4,
            Kind::Reported => 5,
            Kind::Familiar => 6,
            Kind::Proven => 7,
            Kind::Trusted => 8,
        }
    }

    /// The number of bits of a [span](Self::span).
    pub(super) const SPAN_BITS: u32 = 5;

    /// The time for which the source has kept coming since it became familiar or proven: the bit length of the number
    /// of ticks, so about its logarithm. 0: it has another standing.
    #[must_use]
    #[inline(always)]
    pub const fn span(self) -> u32 {
        match self.kind() {
            Kind::Familiar | Kind::Proven => {
                u32::BITS - Tick(self.last()).since_kept(self.since()).leading_zeros()
            }
            Kind::Nothing | Kind::Visited | Kind::Retried | Kind::Trusted | Kind::Reported => 0,
        }
    }

    /// The record without expired parts: empty, if the source has stayed away for too long.
    #[must_use]
    #[inline(always)]
    pub const fn current(self, at: &StandingContext<'_>) -> Self {
        let kind = self.kind();
        match kind {
            Kind::Nothing => return Self::NONE,
            Kind::Trusted => {
                return if at.now.is_before_kept(self.since(), Self::LONGEST_TRUST) {
                    self
                } else {
                    Self::NONE
                };
            }
            Kind::Visited | Kind::Retried | Kind::Familiar | Kind::Proven | Kind::Reported => {}
        }
        let unseen = at.now.since_kept(self.last()) as u64;
        if unseen << Tick::BITS > at.settings.remember_ns {
            return Self::NONE;
        }
        let longest = Self::RETRIED + Tick::AHEAD;
        if matches!(kind, Kind::Retried) && !at.now.is_before_kept(self.since(), longest) {
            let last = Tick(self.last());
            return Self::new(Kind::Visited, false, self.visits(), last, last);
        }
        self
    }

    /// Whether a standing gained by visits or a handshake ranks as fresh. A botnet completes handshakes before it
    /// floods, so a standing gained shortly before the shortage is fresh as long as the shortage lasts. A standing
    /// gained on another node since the shortage began is fresh too.
    #[inline(always)]
    const fn counts_as_fresh(self, at: &StandingContext<'_>) -> bool {
        let too_young = at.now.since(at.shortage.began()) as u64 + at.settings.fresh_ticks as u64;
        self.is_fresh() || at.is_short() && (at.now.since_kept(self.since()) as u64) < too_young
    }

    /// Applies a visit, at most once a tick. Without a shortage, the visit may count as another occasion, or make a
    /// fresh standing a full one. In a shortage it changes no record without a standing: a flood's visits keep no
    /// record, and the table need not be read for them.
    #[inline(always)]
    pub(super) const fn visited(self, at: &StandingContext<'_>) -> Self {
        let seen = self.current(at);
        let kind = seen.kind();
        match kind {
            Kind::Reported => return seen,
            Kind::Nothing | Kind::Visited if at.is_short() => return seen,
            Kind::Nothing if at.settings.visits == 0 => return Self::NONE,
            Kind::Nothing => return seen.on_occasion(at),
            _ => {}
        }
        if at.now.since_kept(seen.last()) == 0 {
            return seen;
        }
        let (mut is_fresh, mut since) = (seen.is_fresh(), Tick(seen.since()));
        let age = at.now.since_kept(seen.since());
        match kind {
            Kind::Visited if (age as u64) << Tick::BITS >= at.settings.apart_ns => {
                return seen.on_occasion(at);
            }
            Kind::Familiar | Kind::Proven if at.is_short() => is_fresh = seen.counts_as_fresh(at),
            Kind::Familiar | Kind::Proven if is_fresh && age >= at.settings.fresh_ticks => {
                is_fresh = false;
                since = at.now;
            }
            _ => {}
        }
        Self::new(kind, is_fresh, seen.visits(), at.now, since)
    }

    /// Counts another occasion, after which the source may be familiar.
    #[inline(always)]
    const fn on_occasion(self, at: &StandingContext<'_>) -> Self {
        let visits = self.visits() + 1;
        let kind = if at.settings.visits != 0 && visits >= at.settings.visits {
            Kind::Familiar
        } else {
            Kind::Visited
        };
        Self::new(kind, false, visits, at.now, at.now)
    }

    /// Proves the source, after a handshake or a valid cookie. A familiar source does not become fresh by it.
    #[inline(always)]
    pub(super) const fn proven(self, at: &StandingContext<'_>) -> Self {
        let seen = self.current(at);
        match seen.kind() {
            Kind::Nothing | Kind::Visited | Kind::Retried => {
                Self::new(Kind::Proven, at.is_short(), seen.visits(), at.now, at.now)
            }
            // The source keeps the time since it was familiar, or proven elsewhere.
            Kind::Familiar | Kind::Reported if !at.is_short() || seen.counts_as_fresh(at) => {
                let (last, since) = (Tick(seen.last()), Tick(seen.since()));
                Self::new(Kind::Proven, seen.is_fresh(), seen.visits(), last, since).visited(at)
            }
            Kind::Familiar | Kind::Proven | Kind::Trusted | Kind::Reported => seen.visited(at),
        }
    }

    /// Applies a report from other nodes, a [reported](Kind::Reported) record; any other record retracts the earlier
    /// report. This host's own observations take precedence.
    #[inline(always)]
    pub(super) const fn apply_report(self, record: Self, at: &StandingContext<'_>) -> Self {
        let seen = self.current(at);
        let (was_reported, is_reported) = (
            matches!(seen.kind(), Kind::Reported),
            matches!(record.kind(), Kind::Reported),
        );
        match seen.kind() {
            Kind::Nothing | Kind::Visited | Kind::Retried | Kind::Reported if is_reported => record,
            _ if was_reported => Self::NONE,
            _ => self,
        }
    }

    /// Makes a source retried for ten minutes, unless its record is better.
    #[inline(always)]
    pub(super) const fn retried(self, at: &StandingContext<'_>) -> Self {
        let seen = self.current(at);
        match seen.kind() {
            Kind::Nothing | Kind::Visited | Kind::Retried => {
                let until = Tick(at.now.0.wrapping_add(Self::RETRIED));
                Self::new(Kind::Retried, false, seen.visits(), at.now, until)
            }
            Kind::Familiar | Kind::Proven | Kind::Trusted | Kind::Reported => seen.visited(at),
        }
    }

    /// Applies an operator's trust: until the given time, it replaces any other standing.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most LONGEST_TRUST")]
    pub(super) const fn trusted(self, until_ns: u64, at: &StandingContext<'_>) -> Self {
        let ticks = (until_ns >> Tick::BITS).saturating_sub(at.now.0 as u64);
        if ticks == 0 {
            return self;
        }
        let ticks = if ticks > Self::LONGEST_TRUST as u64 {
            Self::LONGEST_TRUST
        } else {
            ticks as u32
        };
        let until = Tick(at.now.0.wrapping_add(ticks));
        Self::new(Kind::Trusted, false, 0, at.now, until)
    }
}

#[cfg(test)]
mod tests;
