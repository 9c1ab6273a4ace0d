//! One line of the table: look-up, change and insertion of a bucket, with eviction.

use super::{is_same_bucket, unit_of};
use crate::{
    bucket::Swap,
    numbered::numbered,
    strategy::NO_STATE,
    unit::{ODD_UNIT, UnitTable},
};

/// The number of buckets in a line of the table: with a fingerprint and a state of eight bytes
/// each, it is a cache line.
pub const WAYS: usize = 4;

/// The fingerprint of no bucket.
pub const EMPTY: u64 = 0;

/// In place of a state: another CPU is inserting a bucket into this way. No TAT is as large, and no
/// [record](crate::standing::Record) is all ones.
pub const LOCKED: u64 = NO_STATE;

/// A line in memory shared by all CPUs. `way` must be below [`Line::WAYS`].
pub trait Line {
    /// The number of buckets in the line.
    const WAYS: usize;

    /// The fingerprint of the bucket in a way.
    fn fingerprint(&self, way: usize) -> u64;
    /// The state of the bucket in a way.
    fn state(&self, way: usize) -> u64;
    /// Sets the fingerprint with sequential consistency: all CPUs see names change in the same
    /// order.
    fn set_fingerprint(&self, way: usize, fingerprint: u64);
    /// Sets the state, after all earlier writes.
    fn set_state(&self, way: usize, state: u64);
    /// Sets the state to `new` if it still is `seen`, in one atomic step; returns whether it did.
    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool;
}

/// The table of a line, at one time.
pub trait LineTable: UnitTable {
    /// The time in nanoseconds.
    fn now_ns(&self) -> u64;
    /// Whether some units have states other than TATs in nanoseconds.
    fn has_odd_units(&self) -> bool;
    /// The behaviour when all buckets of a line are in debt.
    fn when_full(&self) -> WhenFull;
    /// Counts the eviction of a bucket in debt.
    fn count_lossy_eviction(&self);

    /// The key's gain from evicting the bucket with this fingerprint and state, by
    /// [`Unit::weight`](crate::unit::Unit::weight); 0 if it is full.
    #[inline(always)]
    fn weight_of(&self, fingerprint: u64, state: u64) -> u64 {
        // In most policies all limits count in nanoseconds, and the compiler removes this.
        if self.has_odd_units() {
            let number = unit_of(fingerprint);
            if number & ODD_UNIT != 0 {
                return self.weight(number, self.now_ns(), state);
            }
        }
        state.saturating_sub(self.now_ns())
    }
}

/// The treatment of a packet that needs a new bucket in a line with all buckets in debt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u32)]
pub enum WhenFull {
    /// The bucket with the least gain for its key is evicted: that key gets a little more than
    /// its budget.
    #[default]
    Evict,
    /// The packet is dropped.
    DenyNew,
    /// The packet passes, and is not charged.
    PassNew,
}

/// Chooses the entry of a line that makes room for another: a bucket, or any other name with a
/// state.
pub trait Eviction {
    /// The outcome of an insertion when no entry of the line can make room.
    const NO_ROOM: InsertOutcome;

    /// Whether two names belong to the same entry.
    fn is_same(&self, name: u64, other: u64) -> bool;
    /// The loss from evicting the entry with this name and state: 0 for none, [`u64::MAX`] if it
    /// must stay.
    fn weight_of(&self, name: u64, state: u64) -> u64;
    /// The behaviour if every eviction loses something.
    fn when_full(&self) -> WhenFull;
    /// Counts an eviction that lost something.
    fn count_lossy_eviction(&self);
}

/// Evicts the bucket with the least gain for its key.
struct ByDebt<'a, S>(&'a S);

impl<S: LineTable> Eviction for ByDebt<'_, S> {
    /// Other CPUs are inserting into all ways.
    const NO_ROOM: InsertOutcome = InsertOutcome::Changed;

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

/// The way of the bucket with this fingerprint; [`Line::WAYS`] if it is missing.
#[inline(always)]
fn find<L: Line>(line: &L, fingerprint: u64) -> usize {
    let mut way = 0;
    while way < L::WAYS && line.fingerprint(way) != fingerprint {
        way += 1;
    }
    way
}

/// The way of the same bucket in any unit; [`Line::WAYS`] if it is missing.
#[inline(always)]
fn find_in_any_unit<L: Line>(line: &L, fingerprint: u64) -> usize {
    let mut way = 0;
    while way < L::WAYS && !is_same_bucket(line.fingerprint(way), fingerprint) {
        way += 1;
    }
    way
}

/// The way of the bucket with this fingerprint, and its state; [`Line::WAYS`] and 0, the state of a
/// full bucket, if it is missing.
#[inline(always)]
pub fn read<L: Line>(line: &L, fingerprint: u64) -> (usize, u64) {
    let way = find(line, fingerprint);
    if way >= L::WAYS {
        return (L::WAYS, 0);
    }
    match line.state(way) {
        // Another CPU is inserting it: no token is spent yet.
        LOCKED => (L::WAYS, 0),
        state => (way, state),
    }
}

/// The fingerprint and the state of the bucket in a way; `None`: the way is empty, or changing
/// hands.
#[cfg(not(target_arch = "bpf"))]
pub fn entry<L: Line>(line: &L, way: usize) -> Option<(u64, u64)> {
    let fingerprint = line.fingerprint(way);
    let state = line.state(way);
    // Reads the fingerprint again, to be sure that the state belongs to the same bucket.
    (fingerprint != EMPTY && state != LOCKED && line.fingerprint(way) == fingerprint)
        .then_some((fingerprint, state))
}

/// Replaces the state `seen` of the bucket with this fingerprint, found in a way, by `wanted`.
///
/// The fingerprint is not part of the compare-and-swap, so it is read again afterwards. If it has
/// changed, the way changed hands with exactly the state `seen`, and the swap is taken back:
///
/// * If that succeeds, no CPU has acted on the state in between, and nothing has changed.
/// * If it fails, another CPU has built on the state. If the way belongs to another bucket now,
///   that bucket keeps the change. If it is the same bucket in another unit, the exchange came
///   after the swap and includes the change. The caller may repeat a charge, because at worst the
///   bucket owes too much; it must not repeat a refund, which would give back twice
///   ([`Swap::Misplaced`]).
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
    /// The outcome of inserting a bucket.
    pub enum InsertOutcome {
        /// The bucket is in the line, in the wanted state.
        Stored,
        /// Another CPU was faster.
        Changed,
        /// The bucket exists already, under another fingerprint or just inserted by another CPU:
        /// exchange it.
        Exists,
        /// The line has no room; the bucket does not exist.
        Unavailable,
        /// The line has no room, and the packet is to pass uncharged.
        Untracked,
    } else Unavailable
}

impl InsertOutcome {
    /// The outcome of a swap that inserted the bucket; `exchange` is [`exchange()`].
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

/// Inserts a missing bucket with this fingerprint into the line, in the state `wanted`.
#[inline(always)]
pub fn insert<L: Line, S: LineTable>(
    line: &L,
    table: &S,
    fingerprint: u64,
    wanted: u64,
) -> InsertOutcome {
    insert_by(line, &ByDebt(table), fingerprint, wanted)
}

/// Inserts a missing entry with this name into the line, in the state `wanted`.
///
/// A way changes hands only while its state is [`LOCKED`]. Locking takes a compare-and-swap from
/// the state chosen for eviction, so no charge can get lost in between. The name is compared too: a
/// bucket that went to another unit and back has the same state again, but under the name read in
/// between, that state has another weight. Two CPUs that insert the same entry at once, in any
/// units, both write its name before they look for it elsewhere: at least one sees the other and
/// withdraws.
#[inline(always)]
pub fn insert_by<L: Line, E: Eviction>(
    line: &L,
    eviction: &E,
    name: u64,
    wanted: u64,
) -> InsertOutcome {
    let mut victim = L::WAYS;
    let mut evicted = LOCKED;
    let mut least = u64::MAX;
    // The first free eviction will do: in a flood that is nearly always the first way.
    let mut way = 0;
    while way < L::WAYS && least > 0 {
        let seen = line.state(way);
        if seen != LOCKED {
            let other = line.fingerprint(way);
            if eviction.is_same(other, name) {
                return InsertOutcome::Exists;
            }
            let weight = eviction.weight_of(other, seen);
            if weight < least {
                least = weight;
                victim = way;
                evicted = seen;
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
            WhenFull::DenyNew => return InsertOutcome::Unavailable,
            WhenFull::PassNew => return InsertOutcome::Untracked,
        }
    }
    if !line.compare_and_swap_state(victim, evicted, LOCKED) {
        return InsertOutcome::Changed;
    }
    // The name may be another since the state was read.
    if eviction.weight_of(line.fingerprint(victim), evicted) != least {
        line.set_state(victim, evicted);
        return InsertOutcome::Changed;
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
        return InsertOutcome::Exists;
    }
    line.set_state(victim, wanted);
    InsertOutcome::Stored
}

/// Exchanges the bucket with this fingerprint, if it is in the line in another unit, to the
/// fingerprint's unit; returns whether its state may have changed since the failed look-up.
///
/// The exchange does not depend on the decision: after a refusal, too, the debt comes back at the
/// current rate.
///
/// The way belongs to the bucket before and after, and is locked meanwhile: a CPU that inserts the
/// same bucket elsewhere sees it there and withdraws.
#[inline(always)]
pub fn exchange<L: Line, U: UnitTable>(line: &L, units: &U, fingerprint: u64, now_ns: u64) -> bool {
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
        // The way became another bucket's in between, with exactly the same state.
        line.set_state(way, seen);
        return true;
    }
    line.set_fingerprint(way, fingerprint);
    line.set_state(way, state);
    true
}
