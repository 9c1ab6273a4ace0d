//! Upkeep of buckets in place, for userspace.

use super::{LOCKED, Line};
use crate::bucket::{ATTEMPTS, UpdateOutcome};

/// Fills the bucket with exactly this fingerprint, cancelling any debt. Declines if it is missing:
/// it is full or counts in another unit now.
#[inline(always)]
pub fn clear<L: Line>(line: &L, fingerprint: u64) -> UpdateOutcome {
    for _ in 0..ATTEMPTS {
        let mut way = 0;
        while way < L::WAYS && line.fingerprint(way) != fingerprint {
            way += 1;
        }
        if way >= L::WAYS {
            return UpdateOutcome::Declined;
        }
        let seen = line.state(way);
        if seen == LOCKED || !line.compare_and_swap_state(way, seen, 0) {
            continue;
        }
        if line.fingerprint(way) == fingerprint {
            return UpdateOutcome::Stored;
        }
        // The way became another bucket's in between, with exactly the same state: give it back.
        line.compare_and_swap_state(way, 0, seen);
    }
    UpdateOutcome::Contended
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;
    use crate::{
        limit::LimitId,
        table::{KeyHash, fingerprint},
    };

    /// A line of one way for one thread.
    #[derive(Default)]
    struct OneWayLine {
        fingerprint: Cell<u64>,
        state: Cell<u64>,
    }

    impl Line for OneWayLine {
        const WAYS: usize = 1;

        fn fingerprint(&self, _: usize) -> u64 {
            self.fingerprint.get()
        }

        fn state(&self, _: usize) -> u64 {
            self.state.get()
        }

        fn set_fingerprint(&self, _: usize, fingerprint: u64) {
            self.fingerprint.set(fingerprint);
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

    fn way(fingerprint: u64, state: u64) -> OneWayLine {
        let line = OneWayLine::default();
        line.set_fingerprint(0, fingerprint);
        line.set_state(0, state);
        line
    }

    const fn fingerprint_in(unit: u32) -> u64 {
        fingerprint(KeyHash(u64::MAX), LimitId(1), unit)
    }

    #[test]
    fn only_the_exact_name_is_filled() {
        let line = way(fingerprint_in(7), 9);
        assert_eq!(clear(&line, fingerprint_in(8)), UpdateOutcome::Declined);
        assert_eq!(line.state(0), 9);
        assert_eq!(clear(&line, fingerprint_in(7)), UpdateOutcome::Stored);
        assert_eq!((line.fingerprint(0), line.state(0)), (fingerprint_in(7), 0));
        let locked = way(fingerprint_in(7), LOCKED);
        assert_eq!(clear(&locked, fingerprint_in(7)), UpdateOutcome::Contended);
        assert_eq!(locked.state(0), LOCKED);
    }
}
