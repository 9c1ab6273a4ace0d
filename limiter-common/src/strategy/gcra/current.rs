//! The current rate of a limit with an automatic rate.

use super::Gcra;

/// The number of bits of an emission interval.
const INTERVAL_BITS: u32 = 24;

const INTERVAL: u64 = (1 << INTERVAL_BITS) - 1;

/// The current rate of a limit with an automatic rate, as one word: the daemon writes and renews
/// it, and packets read it.
///
/// The upper 40 bits hold the upper bits of the rate's end, in nanoseconds of the packets' clock: so the rate
/// ends up to 2^24 ns (17 ms) early, and no later time revives it. The lower 24 bits are the
/// emission interval in nanoseconds. 0: no rate is in force.
///
/// # The bound while the rate moves
///
/// The burst offset of such a limit never changes; the rate decides only the part of it that a
/// token takes. So a bucket's TAT means the same under every rate: a bucket stays as full as it
/// was, and the wait for a full bucket does not change. Over any interval, the emission intervals
/// of all admitted tokens, each as in force at its admission, add up to at most burst offset +
/// interval. So if the rate was never above `r`, at most `r` × (burst offset + interval) tokens are
/// admitted. A [reserve](super::Spend::leaving) is a part of the burst offset, so its bound holds
/// likewise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct CurrentRate(pub u64);

impl CurrentRate {
    /// No rate is in force.
    pub const NONE: Self = Self(0);

    /// The longest emission interval that fits, in nanoseconds.
    pub const LONGEST_INTERVAL: u64 = INTERVAL;

    /// Makes the rate of one token in `interval_ns`, at most [`Self::LONGEST_INTERVAL`], in force
    /// until `until_ns`, both in nanoseconds.
    #[must_use]
    pub const fn new(interval_ns: u64, until_ns: u64) -> Self {
        let interval_ns = if interval_ns < INTERVAL {
            interval_ns
        } else {
            INTERVAL
        };
        Self(until_ns & !INTERVAL | interval_ns)
    }

    /// The emission interval in force at the time `now_ns`, in nanoseconds, clamped between the
    /// intervals of the limit's ceiling and floor; the floor's interval if no rate is in force.
    #[must_use]
    #[inline(always)]
    pub const fn interval(self, now_ns: u64, of_ceiling: u64, of_floor: u64) -> u64 {
        let interval = self.0 & INTERVAL;
        if now_ns >= self.0 & !INTERVAL || interval > of_floor {
            of_floor
        } else if interval < of_ceiling {
            of_ceiling
        } else {
            interval
        }
    }
}

impl Gcra {
    /// The same bucket at another rate, of one token in `emission_interval` ticks. The burst offset
    /// stays.
    #[must_use]
    pub const fn at_interval(self, emission_interval: u64) -> Self {
        let burst = match self.burst_offset.checked_div(emission_interval) {
            Some(burst) => burst,
            None => 0,
        };
        Self {
            emission_interval,
            burst,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;
    /// 100 a second, with a tenth of a second's tokens at once.
    const FLOOR: u64 = 10 * MS;
    /// 10 000 000 a second.
    const CEILING: u64 = 100;

    #[test]
    fn it_holds_until_its_end_and_never_again() {
        let end = 1_000 * MS;
        let rate = CurrentRate::new(5_000, end);
        let at = |now| rate.interval(now, CEILING, FLOOR);
        assert_eq!(at(0), 5_000);
        assert_eq!(at(end - (1 << INTERVAL_BITS)), 5_000);
        assert_eq!(at(end), FLOOR);
        for bits in 30..64 {
            assert_eq!(at(1 << bits), FLOOR);
        }
        assert_eq!(CurrentRate::NONE.interval(0, CEILING, FLOOR), FLOOR);
        assert_eq!(
            CurrentRate::new(CEILING, 5).interval(0, CEILING, FLOOR),
            FLOOR
        );
    }

    #[test]
    fn the_same_bucket_holds_more_at_a_higher_rate() {
        let floor = Gcra::new(10, 1, FLOOR).unwrap();
        let fast = floor.at_interval(FLOOR / 500);
        assert_eq!((fast.burst, fast.burst_offset), (5_000, 100 * MS));
        // As full as before: half.
        let now = 77 * MS;
        assert_eq!(floor.level(now, Some(now + 50 * MS)).remaining, 5);
        assert_eq!(fast.level(now, Some(now + 50 * MS)).remaining, 2_500);
        assert_eq!(floor.at_interval(0).burst, 0);
    }

    proptest! {
        /// Any word stays within the bounds.
        #[test]
        fn any_word_is_safe(word: u64, now: u64) {
            let interval = CurrentRate(word).interval(now, CEILING, FLOOR);
            prop_assert!((CEILING..=FLOOR).contains(&interval));
        }

        /// The bound, for any moves of the rate: over every interval, the emission intervals of all
        /// admitted tokens add up to at most burst offset + interval. If the interval ends with a
        /// packet that must leave a reserve, the bound is lower by the reserve.
        #[test]
        fn a_moving_rate_admits_a_share_of_time(
            kept in 0..100 * MS,
            packets in prop::collection::vec(
                (0..3 * MS, CEILING..=FLOOR, any::<bool>()), 1..200,
            ),
        ) {
            let gcra = Gcra::new(10, 1, FLOOR).unwrap();
            let (mut now, mut tat) = (1_000 * MS, 0);
            let mut admitted: std::vec::Vec<(u64, u64)> = std::vec::Vec::new();
            for (step, interval, leaves) in packets {
                now += step;
                let rate = CurrentRate::new(interval, now + 100 * MS);
                let interval = rate.interval(now, CEILING, FLOOR);
                let reserve = if leaves { kept } else { 0 };
                let spend = gcra.at_interval(interval).spend(now, 1).unwrap();
                let Ok(new) = spend.leaving(reserve).apply(tat) else {
                    continue;
                };
                tat = new;
                admitted.push((now, interval));
                for from in 0..admitted.len() {
                    let spent: u64 = admitted[from..].iter().map(|(_, interval)| interval).sum();
                    let most = gcra.burst_offset - reserve + (now - admitted[from].0);
                    prop_assert!(spent <= most, "{spent} of {most}");
                }
            }
        }

        /// A higher rate admits no less at any moment.
        #[test]
        fn a_higher_rate_is_kinder(
            debt in 0..200 * MS, interval in CEILING..=FLOOR, less in 0..FLOOR,
        ) {
            let gcra = Gcra::new(10, 1, FLOOR).unwrap();
            let now = 1_000 * MS;
            let passes = |interval: u64| {
                let spend = gcra.at_interval(interval).spend(now, 1).unwrap();
                spend.apply(now + debt).is_ok()
            };
            let faster = interval.saturating_sub(less).max(CEILING);
            prop_assert!(passes(faster) || !passes(interval));
        }
    }
}
