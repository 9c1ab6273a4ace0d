//! Shortages: the time from a limit's first refusal for its reserve to a minute after its last one.

use super::Tick;

/// A shortage as one word, shared by all CPUs.
///
/// From the lowest bit on: 32 bits for the tick of its last renewal, and 32 bits for the tick of
/// its start, plus 1. 0: there never was a shortage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Shortage(pub u64);

impl Shortage {
    /// No shortage so far.
    pub const NONE: Self = Self(0);

    /// Whether it holds: it was renewed within the last minute.
    #[must_use]
    #[inline(always)]
    pub const fn holds(self, now: Tick) -> bool {
        self.0 != 0 && now.since(self.renewed()) < Tick::MINUTE
    }

    /// The tick of its start.
    #[must_use]
    #[inline(always)]
    pub const fn began(self) -> Tick {
        Tick(((self.0 >> 32) as u32).wrapping_sub(1))
    }

    /// The tick at which a limit last refused a packet for its reserve.
    #[must_use]
    #[inline(always)]
    pub const fn renewed(self) -> Tick {
        Tick((self.0 & 0xffff_ffff) as u32)
    }

    /// The shortage after such a refusal; unchanged if it was renewed in this tick already.
    #[must_use]
    #[inline(always)]
    pub const fn after_refusal(self, now: Tick) -> Self {
        if !self.holds(now) {
            return Self((now.0.wrapping_add(1) as u64) << 32 | now.0 as u64);
        }
        if now.since(self.renewed()) == 0 {
            return self;
        }
        Self(self.0 >> 32 << 32 | now.0 as u64)
    }
}

/// The shared word in memory.
pub trait ShortageWord {
    /// Returns the word's value.
    fn get(&self) -> u64;
    /// Sets the word to `new` if it still is `seen`, in one atomic step; returns whether it did.
    fn compare_and_swap(&self, seen: u64, new: u64) -> bool;
}

/// Renews the shortage after a limit refused a packet for its reserve. Writes at most once a tick,
/// on any number of CPUs: if the swap fails, another CPU has just renewed it.
#[inline(always)]
pub(crate) fn renew<W: ShortageWord>(word: &W, now: Tick) {
    let seen = word.get();
    let renewed = Shortage(seen).after_refusal(now).0;
    if renewed != seen {
        word.compare_and_swap(seen, renewed);
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// The word for one thread, with a count of its writes.
    #[derive(Default)]
    struct CountingWord {
        word: Cell<u64>,
        writes: Cell<u32>,
    }

    impl ShortageWord for CountingWord {
        fn get(&self) -> u64 {
            self.word.get()
        }

        fn compare_and_swap(&self, seen: u64, new: u64) -> bool {
            assert_eq!(self.word.replace(new), seen);
            self.writes.set(self.writes.get() + 1);
            true
        }
    }

    const TICK_NS: u64 = 1 << Tick::BITS;

    #[test]
    fn a_shortage_holds_for_a_minute_after_its_last_refusal() {
        for start in [0, 1, 1 << Tick::KEPT_BITS, u32::MAX - 100] {
            assert!(!Shortage::NONE.holds(Tick(start)));
            let mut shortage = Shortage::NONE;
            for now in start..start + 10 {
                shortage = shortage.after_refusal(Tick(now));
                assert_eq!(shortage.began(), Tick(start));
                assert_eq!(shortage.renewed(), Tick(now));
            }
            assert!(shortage.holds(Tick(start)), "a CPU's clock is behind");
            let end = start + 9 + Tick::MINUTE;
            assert!(shortage.holds(Tick(end - 1)));
            assert!(!shortage.holds(Tick(end)));
            let next = shortage.after_refusal(Tick(end));
            assert_eq!(next.began(), Tick(end));
        }
    }

    #[test]
    fn a_minute_is_within_a_tick_of_it() {
        let minute = u64::from(Tick::MINUTE) * TICK_NS;
        assert!(minute.abs_diff(60_000_000_000) < TICK_NS);
    }

    proptest! {
        /// Refusals at any times within a tick write once, even on CPUs with different clocks.
        #[test]
        fn a_shortage_is_written_once_a_tick(
            mut times in prop::collection::vec(0..200 * TICK_NS, 1..200),
            behind_ns in 0..TICK_NS,
        ) {
            times.sort_unstable();
            let word = CountingWord::default();
            let mut ticks = 0;
            let mut last = None;
            for now in times {
                let tick = Tick::of_ns(now);
                ticks += u32::from(last.replace(tick) != Some(tick));
                renew(&word, tick);
                renew(&word, Tick::of_ns(now.saturating_sub(behind_ns)));
                prop_assert_eq!(Shortage(word.get()).renewed(), tick);
                prop_assert_eq!(word.writes.get(), ticks);
            }
        }
    }
}
