//! Windows in exact numbers.

use limiter_common::strategy::Strategy;

/// A window strategy's bucket in unbounded numbers, with a clock that never goes back.
#[derive(Clone, Debug)]
pub(crate) struct ExactWindow {
    strategy: Strategy,
    count: u64,
    period: u64,
    /// The start of the current window.
    start: Option<u64>,
    /// The tokens counted in the current window, and in the previous one.
    current: u64,
    previous: u64,
    /// The time of each packet that passed.
    log: Vec<u64>,
}

impl ExactWindow {
    pub(crate) const fn new(strategy: Strategy, count: u64, period: u64) -> Self {
        Self {
            strategy,
            count,
            period,
            start: None,
            current: 0,
            previous: 0,
            log: Vec::new(),
        }
    }

    /// Whether `cost` tokens would pass at `now`.
    pub(crate) fn would_pass(&self, now: u64, cost: u64) -> bool {
        let Self { count, period, .. } = *self;
        let (start, current, previous) = self.buckets(now);
        match self.strategy {
            Strategy::Gcra => unreachable!("GCRA has no window"),
            Strategy::FixedWindow => current + cost <= count,
            Strategy::MovingWindow => {
                let nth = usize::try_from(count).expect("a log that fits");
                let nth_last = self.log.iter().rev().nth(nth - 1);
                cost <= count && nth_last.is_none_or(|time| now - time >= period)
            }
            Strategy::SlidingWindowCounter => {
                let left = u128::from(start + period - now);
                let [count, period, current, previous, cost] =
                    [count, period, current, previous, cost].map(u128::from);
                previous * left + (current + cost) * period <= count * period
            }
        }
    }

    /// Counts tokens that pass.
    pub(crate) fn admit(&mut self, now: u64, cost: u64) {
        self.count_in_bucket(now, cost);
        self.log.push(now);
    }

    /// Counts tokens that this limit refused, regardless of other limits' decisions.
    pub(crate) fn refuse(&mut self, now: u64, cost: u64) {
        if self.strategy == Strategy::FixedWindow {
            self.count_in_bucket(now, cost);
        }
    }

    fn count_in_bucket(&mut self, now: u64, cost: u64) {
        let (start, current, previous) = self.buckets(now);
        self.start = Some(start);
        self.current = current + cost;
        self.previous = previous;
    }

    /// The start of the current window, and the tokens counted in it and in the previous one.
    fn buckets(&self, now: u64) -> (u64, u64, u64) {
        match self.start {
            Some(start) if now - start < self.period => (start, self.current, self.previous),
            Some(start)
                if self.strategy == Strategy::SlidingWindowCounter
                    && now - start < 2 * self.period =>
            {
                (start + self.period, 0, self.current)
            }
            _ => (now, 0, 0),
        }
    }
}
