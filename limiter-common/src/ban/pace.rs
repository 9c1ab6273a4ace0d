//! How a CPU counts the packets that bans drop: each, or, while there are many, one for some.
//!
//! A count is a look-up more. Under a flood that would be a good part of what a banned packet costs, so
//! then one packet counts for [`HitPace::WEIGHT`], whatever ban drops it. What is counted is right on
//! average, and exact while a CPU drops less than [`HitPace::EXACT`] packets in a [tick](TICK_SHIFT).

/// The binary logarithm of the nanoseconds of a tick, some milliseconds.
const TICK_SHIFT: u32 = 20;

/// What a CPU has dropped for bans in the present tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct HitPace {
    tick: u64,
    packets: u64,
}

impl HitPace {
    /// The packets that are each counted in a tick.
    pub const EXACT: u64 = 64;
    /// For how many packets one counts after that.
    pub const WEIGHT: u64 = 16;

    /// Returns for how many packets the one counts that is dropped now; 0: another counts for it.
    #[inline(always)]
    pub const fn next(&mut self, now_ns: u64) -> u64 {
        let tick = now_ns >> TICK_SHIFT;
        if tick != self.tick {
            self.tick = tick;
            self.packets = 0;
        }
        self.packets += 1;
        if self.packets <= Self::EXACT {
            1
        } else if self.packets & (Self::WEIGHT - 1) == 0 {
            Self::WEIGHT
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(packets: u64, now_ns: u64, pace: &mut HitPace) -> u64 {
        (0..packets).map(|_| pace.next(now_ns)).sum()
    }

    #[test]
    fn few_packets_are_each_counted() {
        let mut pace = HitPace::default();
        for tick in 0..9 {
            let packets = HitPace::EXACT - tick;
            assert_eq!(counted(packets, tick << TICK_SHIFT, &mut pace), packets);
        }
    }

    #[test]
    fn many_are_counted_to_a_few() {
        for packets in [65, 79, 80, 1_000, 12_345] {
            let counted = counted(packets, 7, &mut HitPace::default());
            assert!(counted <= packets && packets - counted < HitPace::WEIGHT);
        }
    }
}
