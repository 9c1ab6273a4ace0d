//! Sampling: a CPU applies only a part of very many visits.

use super::{Settings, Tick};

/// The number of visits that a CPU has seen in the current tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct VisitCount {
    tick: u32,
    count: u32,
}

impl VisitCount {
    /// After the first [`Settings::recorded_visits`] of a tick, a CPU applies one visit in this many,
    /// a power of two.
    pub const ONE_IN: u32 = 64;

    /// Counts a visit; returns whether to apply it.
    #[inline(always)]
    pub(crate) const fn is_recorded(&mut self, settings: &Settings, now: Tick) -> bool {
        if self.tick != now.0 {
            *self = Self {
                tick: now.0,
                count: 0,
            };
        }
        self.count = self.count.wrapping_add(1);
        self.count as u64 <= settings.recorded_visits || self.count & (Self::ONE_IN - 1) == 0
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_cpu_records_the_first_visits_of_a_tick_and_then_one_in_sixty_four() {
        let settings = Settings {
            recorded_visits: 10,
            ..Settings::NONE
        };
        let mut count = VisitCount::default();
        for tick in [0, 1, u32::MAX, 0] {
            let recorded = (1..=200).filter(|_| count.is_recorded(&settings, Tick(tick)));
            let recorded: Vec<u32> = recorded.collect();
            assert_eq!(recorded, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 64, 128, 192]);
        }
    }

    #[test]
    fn without_a_bound_it_records_all() {
        let mut count = VisitCount::default();
        assert!((0..100_000).all(|_| count.is_recorded(&Settings::NONE, Tick(7))));
    }
}
