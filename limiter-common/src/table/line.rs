//! One line of the table: finds a bucket in it, changes it, and makes room.

use super::{is_same_bucket, unit_of};
use crate::{
    bucket::Swap,
    numbered::numbered,
    strategy::NO_STATE,
    unit::{KnownUnits, ODD_UNIT},
};

/// The number of buckets in a line of the table: with a fingerprint and a state of eight bytes
/// each, it is a cache line.
pub const WAYS: usize = 4;

/// The fingerprint of no bucket.
pub const EMPTY: u64 = 0;

/// In place of a state: another CPU is inserting a bucket there. No TAT is as large, and no
/// [record](crate::standing::Record) is all ones.
pub const LOCKED: u64 = NO_STATE;

/// A line in memory that all CPUs share. `way` must be below [`Line::WAYS`].
pub trait Line {
    /// The number of buckets in the line.
    const WAYS: usize;

    /// Returns the fingerprint of the bucket in a way.
    fn fingerprint(&self, way: usize) -> u64;
    /// Returns the state of the bucket in a way.
    fn state(&self, way: usize) -> u64;
    /// Sets the fingerprint with sequential consistency: all CPUs see names change in the same
    /// order.
    fn set_fingerprint(&self, way: usize, fingerprint: u64);
    /// Sets the state, after all earlier writes.
    fn set_state(&self, way: usize, state: u64);
    /// Sets the state to `new` if it still is `seen`, in one atomic step.
    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool;
}

/// The store that a line belongs to, at one time.
pub trait LineStore: KnownUnits {
    /// Returns the time in nanoseconds.
    fn now_ns(&self) -> u64;
    /// Returns whether some units have states other than TATs in nanoseconds.
    fn has_odd_units(&self) -> bool;
    /// Returns what to do when all buckets of a line are in debt.
    fn when_full(&self) -> WhenFull;
    /// Counts that a bucket in debt was forgotten.
    fn count_lossy_eviction(&self);

    /// Returns how much the owner of the bucket of that fingerprint and state would gain if it were
    /// forgotten, by [`Unit::weight`](crate::unit::Unit::weight); 0 if it is full.
    #[inline(always)]
    fn weight_of(&self, fingerprint: u64, state: u64) -> u64 {
        // Mostly all limits count in nanoseconds, and the compiler removes this.
        if self.has_odd_units() {
            let number = unit_of(fingerprint);
            if number & ODD_UNIT != 0 {
                return self.weight(number, self.now_ns(), state);
            }
        }
        state.saturating_sub(self.now_ns())
    }
}

/// What happens to a packet that needs a new bucket in a line whose buckets are all in debt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u32)]
pub enum WhenFull {
    /// The bucket whose owner gains least is forgotten: that owner gets a little more than its
    /// budget.
    #[default]
    Evict,
    /// The packet is dropped.
    DenyNew,
    /// The packet passes, and is not charged.
    PassNew,
}

/// Decides which entry of a line makes room for another: a bucket, or what else has a name and a
/// state.
pub trait Eviction {
    /// How inserting ends when none of the line's entries can make room.
    const NO_ROOM: Inserted;

    /// Returns whether two names are of the same entry.
    fn is_same(&self, name: u64, other: u64) -> bool;
    /// Returns how much is lost if the entry of that name and state is forgotten: 0 for nothing,
    /// [`u64::MAX`] if it must stay.
    fn weight_of(&self, name: u64, state: u64) -> u64;
    /// Returns what to do if something is lost with every entry.
    fn when_full(&self) -> WhenFull;
    /// Counts that an entry was forgotten with which something was lost.
    fn count_lossy_eviction(&self);
}

/// Evicts the bucket whose owner gains least.
struct ByDebt<'a, S>(&'a S);

impl<S: LineStore> Eviction for ByDebt<'_, S> {
    /// Other CPUs are inserting into all ways.
    const NO_ROOM: Inserted = Inserted::Changed;

    #[inline(always)]
    fn is_same(&self, name: u64, other: u64) -> bool {
        is_same_bucket(name, other)
    }

    #[inline(always)]
    fn weight_of(&self, name: u64, state: u64) -> u64 {
        self.0.weight_of(name, state)
    }

    #[inline(always)]
    fn when_full(&self) -> WhenFull {
        self.0.when_full()
    }

    #[inline(always)]
    fn count_lossy_eviction(&self) {
        self.0.count_lossy_eviction();
    }
}

/// Returns the way of the bucket of that fingerprint; [`Line::WAYS`] if it is in none.
#[inline(always)]
fn find<L: Line>(line: &L, fingerprint: u64) -> usize {
    let mut way = 0;
    while way < L::WAYS && line.fingerprint(way) != fingerprint {
        way += 1;
    }
    way
}

/// Returns the way of the same bucket in any unit; [`Line::WAYS`] if it is in none.
#[inline(always)]
fn find_in_any_unit<L: Line>(line: &L, fingerprint: u64) -> usize {
    let mut way = 0;
    while way < L::WAYS && !is_same_bucket(line.fingerprint(way), fingerprint) {
        way += 1;
    }
    way
}

/// Returns the way of the bucket of that fingerprint, and its state; if it is in none,
/// [`Line::WAYS`] and 0, the state of a full bucket.
#[inline(always)]
pub fn read<L: Line>(line: &L, fingerprint: u64) -> (usize, u64) {
    let way = find(line, fingerprint);
    if way >= L::WAYS {
        return (L::WAYS, 0);
    }
    match line.state(way) {
        // It is being inserted: nothing was spent yet.
        LOCKED => (L::WAYS, 0),
        state => (way, state),
    }
}

/// Returns the fingerprint and the state of the bucket in a way; `None`: there is none, or it is
/// being inserted or removed.
#[cfg(not(target_arch = "bpf"))]
pub fn entry<L: Line>(line: &L, way: usize) -> Option<(u64, u64)> {
    let fingerprint = line.fingerprint(way);
    let state = line.state(way);
    // Reads the fingerprint again: the state must not be another bucket's.
    (fingerprint != EMPTY && state != LOCKED && line.fingerprint(way) == fingerprint)
        .then_some((fingerprint, state))
}

/// Replaces the state `seen` of the bucket of that fingerprint, which was found in a way, by
/// `wanted`.
///
/// The fingerprint is not part of the compare-and-swap, so it is read again afterwards. If it has
/// changed, the way changed hands with exactly the state that was seen, and the swap is taken back:
///
/// * If that succeeds, nobody has acted on the state in between, and nothing has changed.
/// * If it fails, another CPU has built on the state. If the way is another bucket's now, that
///   bucket keeps the change. If it is the same bucket in another unit, the exchange came after the
///   swap and includes the change. A charge may be repeated then, because at worst the bucket owes
///   too much; a refund must not be, because it would give back twice ([`Swap::Misplaced`]).
#[inline(always)]
pub fn swap<L: Line>(line: &L, way: usize, fingerprint: u64, seen: u64, wanted: u64) -> Swap {
    if !line.compare_and_swap_state(way, seen, wanted) {
        return Swap::Changed;
    }
    if line.fingerprint(way) == fingerprint {
        return Swap::Stored;
    }
    if line.compare_and_swap_state(way, wanted, seen) {
        Swap::Changed
    } else {
        Swap::Misplaced
    }
}

numbered! {
    /// How inserting a bucket ended.
    pub enum Inserted {
        /// The bucket is in the line, in the wanted state.
        Stored,
        /// Another CPU was faster.
        Changed,
        /// The bucket exists already, under another fingerprint or just inserted by another CPU:
        /// exchange it.
        Exists,
        /// There is no room; the bucket does not exist.
        Unavailable,
        /// There is no room, and the packet is to pass uncharged.
        Untracked,
    } else Unavailable
}

impl Inserted {
    /// Returns how the swap ended that inserted the bucket; `exchange` is [`exchange()`].
    #[inline(always)]
    pub fn or_exchange(self, exchange: impl FnOnce() -> bool) -> Swap {
        match self {
            Self::Stored => Swap::Stored,
            Self::Changed => Swap::Changed,
            Self::Exists => {
                exchange();
                Swap::Changed
            }
            Self::Unavailable => Swap::Unavailable,
            Self::Untracked => Swap::Untracked,
        }
    }
}

/// Inserts the bucket of that fingerprint, which was missing, into the line in the state `wanted`.
#[inline(always)]
pub fn insert<L: Line, S: LineStore>(
    line: &L,
    store: &S,
    fingerprint: u64,
    wanted: u64,
) -> Inserted {
    insert_by(line, &ByDebt(store), fingerprint, wanted)
}

/// Inserts the entry of that name, which was missing, into the line in the state `wanted`.
///
/// A way changes hands only while its state is [`LOCKED`], which takes a compare-and-swap from
/// the state that was chosen for eviction; so no charge can get lost in between. The name is
/// compared, too: a bucket that went to another unit and back has the same state again, but the
/// name that was read in between gives that state another weight. Two CPUs that
/// insert the same entry at once, in any units, both write its name before they look for it
/// elsewhere: at least one sees the other and withdraws.
#[inline(always)]
pub fn insert_by<L: Line, E: Eviction>(line: &L, eviction: &E, name: u64, wanted: u64) -> Inserted {
    let mut victim = L::WAYS;
    let mut evicted = (EMPTY, LOCKED);
    let mut least = u64::MAX;
    // The first that costs nothing will do: in a flood that is nearly always the first way's.
    let mut way = 0;
    while way < L::WAYS && least > 0 {
        let seen = line.state(way);
        if seen != LOCKED {
            let other = line.fingerprint(way);
            if eviction.is_same(other, name) {
                return Inserted::Exists;
            }
            let weight = eviction.weight_of(other, seen);
            if weight < least {
                least = weight;
                victim = way;
                evicted = (other, seen);
            }
        }
        way += 1;
    }
    if victim >= L::WAYS {
        return E::NO_ROOM;
    }
    if least > 0 {
        match eviction.when_full() {
            WhenFull::Evict => {}
            WhenFull::DenyNew => return Inserted::Unavailable,
            WhenFull::PassNew => return Inserted::Untracked,
        }
    }
    let (weighed, state) = evicted;
    if !line.compare_and_swap_state(victim, state, LOCKED) {
        return Inserted::Changed;
    }
    if line.fingerprint(victim) != weighed {
        line.set_state(victim, state);
        return Inserted::Changed;
    }
    if least > 0 {
        eviction.count_lossy_eviction();
    }
    line.set_fingerprint(victim, name);
    let mut elsewhere = false;
    for way in 0..L::WAYS {
        elsewhere |= way != victim && eviction.is_same(line.fingerprint(way), name);
    }
    if elsewhere {
        line.set_fingerprint(victim, EMPTY);
        line.set_state(victim, 0);
        return Inserted::Exists;
    }
    line.set_state(victim, wanted);
    Inserted::Stored
}

/// Exchanges the bucket of that fingerprint, if it is in the line in another unit, to the unit of
/// the fingerprint; returns whether its state may differ from when it was not found.
///
/// It is exchanged whatever the decision will be, so that after a refusal too the debt comes back
/// at the current rate.
///
/// The way is the bucket's before and after, and locked meanwhile: a CPU that inserts the same
/// bucket elsewhere sees it there and withdraws.
#[inline(always)]
pub fn exchange<L: Line, U: KnownUnits>(
    line: &L,
    units: &U,
    fingerprint: u64,
    now_ns: u64,
) -> bool {
    let way = find_in_any_unit(line, fingerprint);
    if way >= L::WAYS {
        return false;
    }
    let old = line.fingerprint(way);
    let seen = line.state(way);
    if old == fingerprint {
        return seen != 0;
    }
    if seen == LOCKED {
        return true;
    }
    let state = units.exchange(unit_of(old), unit_of(fingerprint), now_ns, seen);
    if !line.compare_and_swap_state(way, seen, LOCKED) {
        return true;
    }
    if line.fingerprint(way) != old {
        // It became another bucket's in between, with exactly the same state.
        line.set_state(way, seen);
        return true;
    }
    line.set_fingerprint(way, fingerprint);
    line.set_state(way, state);
    true
}
