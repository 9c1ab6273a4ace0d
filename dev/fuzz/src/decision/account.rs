//! What one bucket has admitted, and the bound on it.

use limiter_common::strategy::Strategy;

use super::{admitted::Admitted, wanted::Wanted};

/// What one bucket has admitted.
pub(super) struct Account {
    /// The first time, in ticks of GCRA.
    first: u64,
    /// How much since, in the same ticks.
    ticks: u128,
    admitted: Admitted,
    /// How far a packet was behind the latest one at most, in nanoseconds.
    behind: u64,
}

impl Account {
    pub(super) fn new(charge: &Wanted, now: u64) -> Self {
        Self {
            first: charge.budget.gcra.ticks(now),
            ticks: 0,
            admitted: Admitted::default(),
            behind: 0,
        }
    }

    /// Adds a packet; the latest one of all came at the time `latest`.
    pub(super) fn charge(&mut self, charge: &Wanted, now: u64, latest: u64) {
        self.admitted.add(now, charge.cost);
        self.behind = self.behind.max(latest - now);
        let budget = &charge.budget;
        let strategy = budget.strategy();
        if strategy == Strategy::Gcra {
            self.charge_gcra(charge, now);
            return;
        }
        // Where a window has begun by one clock and not yet by another, periods are shorter by what
        // is between them. A window is two ticks longer at most than was configured.
        let window = &budget.window;
        let period = window.layout.ns(window.period.saturating_sub(2));
        let length = match strategy {
            Strategy::MovingWindow => window.period,
            _ => period.saturating_sub(self.behind),
        };
        let most = strategy.most_in_a_period(window.count, window.count);
        assert!(self.admitted.most_in(length) <= most, "{charge:?}");
    }

    /// The bound: burst + interval / emission interval, times the emission interval. It holds
    /// for clocks that go back, too, and for intervals that end before they began.
    fn charge_gcra(&mut self, charge: &Wanted, now: u64) {
        let gcra = &charge.budget.gcra;
        self.ticks += u128::from(charge.cost) * u128::from(gcra.emission_interval);
        let room = u128::from(gcra.burst_offset) + u128::from(gcra.ticks(now));
        assert!(u128::from(self.first) + self.ticks <= room, "{charge:?}");
    }
}
