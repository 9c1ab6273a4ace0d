//! The tokens that a bucket has admitted, and their bound.

use limiter_common::strategy::Strategy;

use super::{admitted::Admissions, wanted::LimitCharge};

/// The tokens that a bucket has admitted.
pub(super) struct Account {
    /// The first packet's time, in ticks of GCRA.
    first: u64,
    /// All tokens admitted, in the same ticks.
    ticks: u128,
    admitted: Admissions,
    /// The furthest that a packet was behind the latest one, in nanoseconds.
    behind: u64,
}

impl Account {
    pub(super) fn new(charge: &LimitCharge, now: u64) -> Self {
        Self {
            first: charge.parameters.gcra.ticks(now),
            ticks: 0,
            admitted: Admissions::default(),
            behind: 0,
        }
    }

    /// Adds a packet; `latest` is the highest time so far.
    pub(super) fn charge(&mut self, charge: &LimitCharge, now: u64, latest: u64) {
        self.admitted.add(now, charge.cost);
        self.behind = self.behind.max(latest - now);
        let parameters = &charge.parameters;
        let strategy = parameters.strategy();
        if strategy == Strategy::Gcra {
            self.charge_gcra(charge, now);
            return;
        }
        // If a window has begun by one clock and not yet by another, the difference shortens
        // periods. A window is at most two ticks longer than configured.
        let window = &parameters.window;
        let period = window.layout.ns(window.period.saturating_sub(2));
        let length = match strategy {
            Strategy::MovingWindow => window.period,
            _ => period.saturating_sub(self.behind),
        };
        let most = strategy.most_in_a_period(window.count, window.count);
        assert!(self.admitted.most_in(length) <= most, "{charge:?}");
    }

    /// Checks the bound: burst + interval / emission interval, times the emission interval. It also
    /// holds for clocks that go back, and for intervals that end before they begin.
    fn charge_gcra(&mut self, charge: &LimitCharge, now: u64) {
        let gcra = &charge.parameters.gcra;
        self.ticks += u128::from(charge.cost) * u128::from(gcra.emission_interval);
        let room = u128::from(gcra.burst_offset) + u128::from(gcra.ticks(now));
        assert!(u128::from(self.first) + self.ticks <= room, "{charge:?}");
    }
}
