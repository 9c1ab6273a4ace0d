//! One line of the table: finding a bucket in it, changing it, and making room.

#[cfg(not(target_arch = "bpf"))]
use super::upkeep::is_nobodys;
use super::{Spot, is_same_bucket, unit_of};
use crate::{
    bucket::{ATTEMPTS, Updated},
    strategy::{Change, NO_STATE, gcra},
    unit::{KnownUnits, ODD_UNIT},
};

/// How many buckets a line of the table has: with a name and a state of eight bytes each, a cache
/// line.
pub const WAYS: usize = 4;

/// The name of no bucket.
pub const EMPTY: u64 = 0;

/// In place of a state: another CPU is putting a bucket there. No TAT is as large.
pub const LOCKED: u64 = NO_STATE;

/// A line in memory that all CPUs share. `way` is below [`Line::WAYS`].
pub trait Line {
    /// How many buckets it has room for.
    const WAYS: usize;

    /// The name of the bucket in a way.
    fn name(&self, way: usize) -> u64;
    /// Its state.
    fn state(&self, way: usize) -> u64;
    /// Names another bucket, in the one order that all CPUs see.
    fn set_name(&self, way: usize, name: u64);
    /// Sets the state, after everything that was written before.
    fn set_state(&self, way: usize, state: u64);
    /// Sets the state to `new` if it still is `seen`, in one atomic step.
    fn compare_and_swap_state(&self, way: usize, seen: u64, new: u64) -> bool;
}

/// What a line belongs to, at one time.
pub trait LineStore: KnownUnits {
    /// The time in nanoseconds.
    fn now_ns(&self) -> u64;
    /// Whether there are units whose states are other than TATs in nanoseconds.
    fn has_odd_units(&self) -> bool;
    /// What happens where all of a line are in debt.
    fn when_full(&self) -> WhenFull;
    /// A bucket in debt was forgotten.
    fn count_lossy_eviction(&self);

    /// How much the owner of the bucket of that name and state would gain if it were forgotten, as
    /// [`Unit::weight`](crate::unit::Unit::weight) has it; 0 when it is full.
    #[inline(always)]
    fn weight_of(&self, name: u64, state: u64) -> u64 {
        // Mostly all limits count in nanoseconds, and then nothing is left of the rest.
        if self.has_odd_units() {
            let number = unit_of(name);
            if number & ODD_UNIT != 0 {
                return self.weight(number, self.now_ns(), state);
            }
        }
        state.saturating_sub(self.now_ns())
    }
}

/// What happens to a packet that needs a new bucket where all of the line are in debt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
#[repr(u32)]
pub enum WhenFull {
    /// The bucket whose owner gains least is forgotten: whose it was has a little more
    /// than its budget.
    #[default]
    Evict,
    /// The packet is dropped.
    DenyNew,
    /// The packet passes, and is not charged.
    PassNew,
}

/// The way of the bucket of that name; [`Line::WAYS`] when it is in none.
#[inline(always)]
fn find<L: Line>(line: &L, name: u64) -> usize {
    let mut way = 0;
    while way < L::WAYS && line.name(way) != name {
        way += 1;
    }
    way
}

/// The way of the same bucket in whatever unit; [`Line::WAYS`] when it is in none.
#[inline(always)]
fn find_in_any_unit<L: Line>(line: &L, name: u64) -> usize {
    let mut way = 0;
    while way < L::WAYS && !is_same_bucket(line.name(way), name) {
        way += 1;
    }
    way
}

/// The way of the bucket of that name and its state; [`Line::WAYS`] and 0, which is the state of a
/// full bucket, when it is in none.
#[inline(always)]
pub fn read<L: Line>(line: &L, name: u64) -> (usize, u64) {
    let way = find(line, name);
    if way >= L::WAYS {
        return (L::WAYS, 0);
    }
    match line.state(way) {
        // Just being put in: nothing was spent yet.
        LOCKED => (L::WAYS, 0),
        state => (way, state),
    }
}

/// The name and the state of the bucket in a way; `None`: there is none, or it is just being put
/// in or out.
#[cfg(not(target_arch = "bpf"))]
pub fn entry<L: Line>(line: &L, way: usize) -> Option<(u64, u64)> {
    let name = line.name(way);
    let state = line.state(way);
    // The name again: the state must not be another bucket's.
    (!is_nobodys(name) && state != LOCKED && line.name(way) == name).then_some((name, state))
}

/// How a step ended where not by an [`Updated`] as its number: another CPU was faster.
pub const AGAIN: u32 = 0xffff;

/// Likewise: the bucket is not in its line under that name.
pub const MISSING: u32 = 0xfffe;

/// Likewise: it is there, in another unit or just put in by another CPU.
pub const IN_ANOTHER_UNIT: u32 = 0xfffd;

/// Whether a step has ended by one of these.
#[inline(always)]
const fn is_step(ended: u32) -> bool {
    ended >= IN_ANOTHER_UNIT
}

/// Changes the state of the bucket of that name, if it is there. A step, whose end [`update`]
/// knows.
#[inline(always)]
pub fn change<L: Line>(line: &L, name: u64, wanted: Change) -> u32 {
    let way = find(line, name);
    if way >= L::WAYS {
        return MISSING;
    }
    let seen = line.state(way);
    if seen == LOCKED {
        return AGAIN;
    }
    let decision = wanted.apply(seen);
    if decision.passes() {
        return swap(line, way, name, seen, decision.state, wanted.is_refund());
    }
    Updated::Declined as u32
}

/// Changes the state of the bucket of that name, which was seen in a way and a state. A step.
#[inline(always)]
fn swap<L: Line>(line: &L, way: usize, name: u64, seen: u64, state: u64, is_refund: bool) -> u32 {
    if !line.compare_and_swap_state(way, seen, state) {
        return AGAIN;
    }
    let named = line.name(way);
    if named == name {
        return Updated::Stored as u32;
    }
    // It has become another's in between, in the very same state: give it back. Or, still the same
    // bucket, it was exchanged, and then rather after the swap than before: what was spent is left
    // there, and is spent again.
    if is_refund || !is_same_bucket(named, name) {
        line.compare_and_swap_state(way, state, seen);
    }
    // To give back twice would be too much.
    if is_refund {
        Updated::Stored as u32
    } else {
        AGAIN
    }
}

/// Puts the bucket of that name, which was not there, into the line. A step, too.
///
/// A way changes hands only while its state is [`LOCKED`], which takes a compare-and-swap from
/// the state that was found worth evicting; so no charge can get lost in between. Two CPUs that
/// put the same bucket in at once, in whatever units, both write its name before they look for it
/// elsewhere: at least one sees the other and withdraws.
#[inline(always)]
pub fn insert<L: Line, S: LineStore>(line: &L, store: &S, name: u64, wanted: Change) -> u32 {
    if wanted.is_refund() {
        // The bucket is gone, and so is its debt. Or another CPU has just exchanged it: then it
        // owes too much, which is rare enough.
        return Updated::Stored as u32;
    }
    let mut victim = L::WAYS;
    let mut evicted = LOCKED;
    let mut least = u64::MAX;
    // The first one that is full will do: in a flood that is nearly always the first of all.
    let mut way = 0;
    while way < L::WAYS && least > 0 {
        let seen = line.state(way);
        if seen != LOCKED {
            let other = line.name(way);
            if is_same_bucket(other, name) {
                return IN_ANOTHER_UNIT;
            }
            let weight = store.weight_of(other, seen);
            if weight < least {
                least = weight;
                victim = way;
                evicted = seen;
            }
        }
        way += 1;
    }
    if victim >= L::WAYS {
        return AGAIN;
    }
    if least > 0 {
        match store.when_full() {
            WhenFull::Evict => {}
            WhenFull::DenyNew => return Updated::Unavailable as u32,
            WhenFull::PassNew => return Updated::Untracked as u32,
        }
    }
    let decision = wanted.apply(0);
    if !decision.passes() {
        return Updated::Declined as u32;
    }
    if !line.compare_and_swap_state(victim, evicted, LOCKED) {
        return AGAIN;
    }
    if least > 0 {
        store.count_lossy_eviction();
    }
    line.set_name(victim, name);
    let mut elsewhere = false;
    for way in 0..L::WAYS {
        elsewhere |= way != victim && is_same_bucket(line.name(way), name);
    }
    if elsewhere {
        line.set_name(victim, EMPTY);
        line.set_state(victim, 0);
        return IN_ANOTHER_UNIT;
    }
    line.set_state(victim, decision.state);
    Updated::Stored as u32
}

/// Changes the bucket of that name, which is there in another unit, and has it count in the unit
/// of the name from now on; also when the change declines, so that what is owed comes back at the
/// rate that is in force. A step, too.
///
/// The way is the bucket's before and after, and locked meanwhile: whoever puts the same bucket in
/// elsewhere sees it there and withdraws.
#[inline(always)]
pub fn exchange<L: Line, U: KnownUnits>(
    line: &L,
    units: &U,
    name: u64,
    now_ns: u64,
    wanted: Change,
) -> u32 {
    let way = find_in_any_unit(line, name);
    if way >= L::WAYS {
        return AGAIN;
    }
    let named = line.name(way);
    let seen = line.state(way);
    if seen == LOCKED || named == name {
        return AGAIN;
    }
    let state = units.exchange(unit_of(named), unit_of(name), now_ns, seen);
    let decision = wanted.apply(state);
    if !line.compare_and_swap_state(way, seen, LOCKED) {
        return AGAIN;
    }
    if line.name(way) != named {
        // It has become another's in between, in the very same state.
        line.set_state(way, seen);
        return AGAIN;
    }
    line.set_name(way, name);
    line.set_state(way, decision.state);
    decision.ended() as u32
}

/// Charges a bucket of GCRA that was looked for: by the steps that are enough when no other CPU comes
/// between, or else by `again`, which is to be [`update`].
#[inline(always)]
pub fn spend<L: Line>(
    line: &L,
    spot: Spot,
    seen: u64,
    spend: &gcra::Spend,
    insert: impl FnOnce() -> u32,
    again: impl FnOnce() -> Updated,
) -> Updated {
    let way = spot.way;
    let ended = if way >= L::WAYS {
        insert()
    } else if let Ok(state) = spend.apply(seen) {
        swap(line, way, spot.name, seen, state, false)
    } else {
        return Updated::Declined;
    };
    if is_step(ended) {
        again()
    } else {
        Updated::of_number(ended)
    }
}

/// Changes a bucket by [`change()`], or else by [`insert`] or [`exchange`], until one of them
/// succeeds or [`ATTEMPTS`] have failed.
#[inline(always)]
pub fn update(
    mut change: impl FnMut() -> u32,
    mut insert: impl FnMut() -> u32,
    mut exchange: impl FnMut() -> u32,
) -> Updated {
    for _ in 0..ATTEMPTS {
        let mut ended = change();
        if ended == MISSING {
            ended = insert();
        }
        if ended == IN_ANOTHER_UNIT {
            ended = exchange();
        }
        if ended != AGAIN {
            return Updated::of_number(ended);
        }
    }
    Updated::Contended
}
