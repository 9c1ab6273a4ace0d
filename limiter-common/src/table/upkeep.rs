//! Upkeep of buckets where they are, for userspace: filling them, and freeing the ways that an
//! older daemon has left locked.

use super::{Line, is_same_bucket, line::LOCKED};
use crate::bucket::{ATTEMPTS, Updated};

/// The name of a way whose lock is being examined. No bucket has it: none is of limit 0.
pub const MARK: u64 = 1;

/// Whether it is the name of no bucket: that of an empty way, or of a marked one.
#[must_use]
#[inline(always)]
pub const fn is_nobodys(name: u64) -> bool {
    is_same_bucket(name, MARK)
}

/// Whether a bucket is there, in whatever unit.
#[inline(always)]
pub fn is_there<L: Line>(line: &L, name: u64) -> bool {
    let mut way = 0;
    while way < L::WAYS && !is_same_bucket(line.name(way), name) {
        way += 1;
    }
    way < L::WAYS
}

/// Fills the bucket of exactly that name, whatever it owes. Declines where there is none: it is full,
/// or counts in another unit by now.
#[inline(always)]
pub fn clear<L: Line>(line: &L, name: u64) -> Updated {
    for _ in 0..ATTEMPTS {
        let mut way = 0;
        while way < L::WAYS && line.name(way) != name {
            way += 1;
        }
        if way >= L::WAYS {
            return Updated::Declined;
        }
        let seen = line.state(way);
        if seen == LOCKED || !line.compare_and_swap_state(way, seen, 0) {
            continue;
        }
        if line.name(way) == name {
            return Updated::Stored;
        }
        // It has become another's in between, in the very same state: give it back.
        line.compare_and_swap_state(way, 0, seen);
    }
    Updated::Contended
}

/// Names a locked way as nobody's, if it still has the name under which it was seen locked.
///
/// From then on whoever locks it gives it another name before he lets go: only who puts a bucket
/// in finds it, and he names it. So a way that is seen locked under the mark, and again after all
/// programs have ended that ran at that time, is locked by nobody who still runs.
///
/// If somebody holds the lock after all, the bucket that he puts there is forgotten.
#[inline(always)]
pub fn mark<L: Line>(line: &L, way: usize, name: u64) -> Updated {
    if way >= L::WAYS || line.state(way) != LOCKED || line.name(way) != name {
        return Updated::Declined;
    }
    line.set_name(way, MARK);
    Updated::Stored
}

/// Makes a marked way a full bucket of nobody's, which gives way to the next, if it still is in the
/// state `seen`.
#[inline(always)]
pub fn free<L: Line>(line: &L, way: usize, seen: u64) -> Updated {
    if way < L::WAYS && line.name(way) == MARK && line.compare_and_swap_state(way, seen, 0) {
        Updated::Stored
    } else {
        Updated::Declined
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::{
        limit::LimitId,
        table::{EMPTY, Place, name},
    };

    /// A line of one way that one thread uses.
    #[derive(Default)]
    struct OneWay {
        name: Cell<u64>,
        state: Cell<u64>,
    }

    impl Line for OneWay {
        const WAYS: usize = 1;

        fn name(&self, _: usize) -> u64 {
            self.name.get()
        }

        fn state(&self, _: usize) -> u64 {
            self.state.get()
        }

        fn set_name(&self, _: usize, name: u64) {
            self.name.set(name);
        }

        fn set_state(&self, _: usize, state: u64) {
            self.state.set(state);
        }

        fn compare_and_swap_state(&self, _: usize, seen: u64, new: u64) -> bool {
            let is_seen = self.state.get() == seen;
            if is_seen {
                self.state.set(new);
            }
            is_seen
        }
    }

    fn way(name: u64, state: u64) -> OneWay {
        let line = OneWay::default();
        line.set_name(0, name);
        line.set_state(0, state);
        line
    }

    const fn named(unit: u32) -> u64 {
        name(Place(u64::MAX), LimitId(1), unit)
    }

    #[test]
    fn only_the_exact_name_is_filled() {
        let line = way(named(7), 9);
        assert_eq!(clear(&line, named(8)), Updated::Declined);
        assert_eq!(line.state(0), 9);
        assert_eq!(clear(&line, named(7)), Updated::Stored);
        assert_eq!((line.name(0), line.state(0)), (named(7), 0));
        let locked = way(named(7), LOCKED);
        assert_eq!(clear(&locked, named(7)), Updated::Contended);
        assert_eq!(locked.state(0), LOCKED);
    }

    #[test]
    fn only_a_lock_under_its_name_is_marked_and_only_a_mark_is_freed() {
        let line = way(named(7), LOCKED);
        assert_eq!(free(&line, 0, LOCKED), Updated::Declined);
        assert_eq!(mark(&line, 0, named(8)), Updated::Declined);
        assert_eq!(mark(&line, 1, named(7)), Updated::Declined);
        assert_eq!(mark(&line, 0, named(7)), Updated::Stored);
        assert_eq!(free(&line, 1, LOCKED), Updated::Declined);
        assert_eq!(free(&line, 0, 5), Updated::Declined);
        assert_eq!(free(&line, 0, LOCKED), Updated::Stored);
        assert_eq!((line.name(0), line.state(0)), (MARK, 0));
        assert_eq!(mark(&way(named(7), 3), 0, named(7)), Updated::Declined);
    }

    #[test]
    fn no_bucket_is_nobodys() {
        assert!(is_nobodys(EMPTY) && is_nobodys(MARK));
        assert!(!is_nobodys(name(Place(0), LimitId(1), 0)));
        assert!(!is_there(&way(MARK, 0), named(1)));
        assert!(is_there(&way(named(2), 0), named(1)));
    }
}
