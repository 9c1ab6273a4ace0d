//! Sampling of refused packets' questions: a limit on the number that a CPU reports to userspace per tick.
//!
//! Each tick reports its first questions, regardless of their names. So a name's share of the reports is about its
//! share of the refused packets, and a flood of other names cannot suppress it for long.

/// The time step, in bits of nanoseconds: 134 ms.
const TICK_BITS: u32 = 27;

/// The maximum number of questions reported per tick.
const MOST: u64 = 16;

/// The number of questions that a CPU has reported in the current tick. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sampling {
    tick: u64,
    reported: u64,
}

impl Sampling {
    /// Returns whether one more question may be reported at `now`, in nanoseconds, and counts it.
    #[must_use]
    #[inline(always)]
    pub const fn take(&mut self, now: u64) -> bool {
        let tick = now >> TICK_BITS;
        if self.tick != tick {
            self.tick = tick;
            self.reported = 0;
        }
        let has_room = self.reported < MOST;
        self.reported += has_room as u64;
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tick_has_its_questions() {
        let mut sampling = Sampling::default();
        let last = (1 << TICK_BITS) - 1;
        for (now, reported) in [(0, MOST), (last, 0), (last + 1, MOST), (5 * last, MOST)] {
            let count = (0..100).filter(|_| sampling.take(now)).count() as u64;
            assert_eq!(count, reported, "{now}");
        }
    }
}
