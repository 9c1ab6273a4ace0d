//! Measures how fast a counter grows.

use std::{collections::VecDeque, time::Duration};

/// The span of time over which a rate is measured.
///
/// A mean over 200 ms takes a flood of four times the limit for pressure at the first poll after its start, 50 ms
/// later, and a flood just above the limit after 200 ms. A burst of some milliseconds, which limits allow for, is no
/// pressure. Until then the limits alone decide.
pub const WINDOW: Duration = Duration::from_millis(200);

/// The interval of polls.
pub const EVERY: Duration = Duration::from_millis(50);

/// A growth in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The increase of the counter.
    pub amount: u64,
    /// The span in nanoseconds; above 0.
    pub elapsed_ns: u64,
}

/// Measures how fast a counter grows, poll after poll.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    /// Times in nanoseconds, with the counter's value then. The first is the last one from before the window.
    seen: VecDeque<(u64, u64)>,
}

impl Meter {
    /// Records the counter's value at a time, in nanoseconds of any clock, and returns its growth over the window;
    /// `None`: this is the first poll, or the counter has begun anew.
    pub fn sample(&mut self, now_ns: u64, counter: u64) -> Option<Growth> {
        let went_back = self
            .seen
            .back()
            .is_some_and(|(time, last)| *time > now_ns || *last > counter);
        if went_back {
            self.seen.clear();
        }
        if self.seen.back().is_none_or(|(time, _)| *time < now_ns) {
            self.seen.push_back((now_ns, counter));
        }
        let window_ns = u64::try_from(WINDOW.as_nanos()).unwrap_or(u64::MAX);
        let start = now_ns.saturating_sub(window_ns);
        while self.seen.get(1).is_some_and(|(time, _)| *time <= start) {
            self.seen.pop_front();
        }
        let (since, before) = self.seen.front()?;
        (*since < now_ns).then(|| Growth {
            amount: counter - before,
            elapsed_ns: now_ns - since,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The time of a poll in milliseconds, the counter's value, and the result: the growth, and its span in
    /// milliseconds.
    type Sample = (u64, u64, Option<(u64, u64)>);

    #[track_caller]
    fn check(looks: &[Sample]) {
        let mut meter = Meter::default();
        for (ms, counter, expected) in looks {
            let growth = meter.sample(ms * MS, *counter);
            let reported = growth.map(|growth| (growth.amount, growth.elapsed_ns / MS));
            assert_eq!(reported, *expected, "at {ms} ms");
        }
    }

    #[test]
    fn the_mean_over_the_window() {
        check(&[
            (1000, 500, None),
            (1050, 500, Some((0, 50))),
            // A flood begins: a step up that is all within the window at once ...
            (1100, 600, Some((100, 100))),
            (1150, 700, Some((200, 150))),
            (1200, 800, Some((300, 200))),
            // ... then the window is full of it ...
            (1250, 900, Some((400, 200))),
            (1300, 1000, Some((400, 200))),
            // ... and 200 ms after its end it is forgotten.
            (1350, 1000, Some((300, 200))),
            (1500, 1000, Some((0, 200))),
        ]);
    }

    #[test]
    fn polls_that_come_late_or_twice() {
        check(&[
            (1000, 0, None),
            // Late: over all of that time, not over the window.
            (2000, 1000, Some((1000, 1000))),
            (2000, 1000, Some((1000, 1000))),
            (2010, 1005, Some((1005, 1010))),
            (2250, 1100, Some((95, 240))),
        ]);
    }

    #[test]
    fn a_counter_that_goes_back_is_another_one() {
        check(&[
            (1000, 500, None),
            (1050, 600, Some((100, 50))),
            (1100, 10, None),
            (1150, 20, Some((10, 50))),
        ]);
    }
}
