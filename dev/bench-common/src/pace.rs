//! When a flood's next packet is due.

/// How far behind its time a flood may be, in nanoseconds. Packets later than that are never sent,
/// so that no burst is longer: up to a million packets a second, none fills the ring of a veth
/// pair, which takes 256.
pub const LONGEST_BURST_NS: u64 = 200_000;

/// Fractions of a nanosecond, as a power of two: 300 000 packets a second are 3333.33 ns apart.
const FRACTION: u32 = 8;

const SECOND_NS: u64 = 1_000_000_000;

/// A flood's pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Pace {
    /// 256ths of a nanosecond between two packets; 0: no pause between them.
    interval: u64,
    /// When the next one is due, on the kernel's monotonic clock in 256ths of a nanosecond.
    due: u64,
}

impl Pace {
    /// As fast as the machine makes them.
    pub const UNBOUNDED: Self = Self {
        interval: 0,
        due: 0,
    };

    /// Makes a pace of that many packets a second, which is not 0.
    #[must_use]
    pub const fn per_second(packets: u64) -> Self {
        Self {
            interval: (SECOND_NS << FRACTION) / packets,
            due: 0,
        }
    }

    /// Returns the words that a map holds.
    #[must_use]
    pub const fn words(&self) -> [u64; 2] {
        [self.interval, self.due]
    }

    /// Returns whether a packet is due, which then counts as sent.
    #[inline(always)]
    pub const fn sends(&mut self, now_ns: u64) -> bool {
        const MOST: u64 = LONGEST_BURST_NS << FRACTION;
        let now = now_ns << FRACTION;
        if now < self.due {
            return false;
        }
        if now - self.due > MOST {
            self.due = now - MOST;
        }
        self.due += self.interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many are sent if the clock is read every `step` nanoseconds, from `from` to
    /// `to`.
    fn sent(pace: &mut Pace, from: u64, to: u64, step: usize) -> u64 {
        let times = (from..to).step_by(step);
        times.map(|now| u64::from(pace.sends(now))).sum()
    }

    #[test]
    fn a_second_has_as_many_as_it_says() {
        const START: u64 = 1 << 50;
        for rate in [100_000, 300_000, 950_000] {
            let mut pace = Pace::per_second(rate);
            // The first is late by more than a burst.
            while pace.sends(START) {}
            let sent = sent(&mut pace, START, START + SECOND_NS, 100);
            // The interval is rounded down to a fraction of a nanosecond.
            assert!(
                sent.abs_diff(rate) <= 1 + rate / 100_000,
                "{sent} of {rate}"
            );
        }
    }

    #[test]
    fn a_burst_is_at_most_a_fifth_of_a_millisecond() {
        let mut pace = Pace::per_second(300_000);
        let burst = (0..10_000).filter(|_| pace.sends(SECOND_NS)).count();
        assert!((60..=61).contains(&burst), "{burst}");
        let again = (0..10_000).filter(|_| pace.sends(3 * SECOND_NS)).count();
        assert_eq!(again, burst);
    }

    #[test]
    fn without_bounds_all_are_sent() {
        let mut pace = Pace::UNBOUNDED;
        assert_eq!(sent(&mut pace, 5, 105, 1), 100);
    }
}
