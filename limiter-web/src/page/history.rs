//! Packets by reason over time, in a fixed amount of memory.

use std::{collections::VecDeque, time::Duration};

use limiter_common::reason::Reason;

pub(super) const REASONS: usize = Reason::ALL.len();

/// A number for each reason, in the order of [`Reason::ALL`].
pub(super) type ByReason = [u64; REASONS];

/// Ten minutes by second, and a day by minute.
pub(super) struct History {
    seconds: Ring,
    minutes: Ring,
    /// The counters at the last call of [`History::record`].
    before: Option<ByReason>,
}

/// The newest slots of equal length.
pub(super) struct Ring {
    /// The slots' length, in seconds.
    step: i64,
    most: usize,
    /// The oldest first.
    slots: VecDeque<Slot>,
}

/// The packets counted in a span of time.
pub(super) struct Slot {
    /// Its start, in seconds since 1970.
    pub(super) at: i64,
    /// How much of the span was counted.
    covered: Duration,
    packets: ByReason,
}

impl History {
    pub(super) fn new() -> Self {
        Self {
            seconds: Ring::new(1, 600),
            minutes: Ring::new(60, 24 * 60),
            before: None,
        }
    }

    /// Records the counters at a time, in seconds since 1970; `elapsed`: since the call before.
    pub(super) fn record(&mut self, at: i64, elapsed: Duration, counted: &ByReason) {
        let Some(before) = self.before.replace(*counted) else {
            return;
        };
        let mut new = [0; REASONS];
        for ((new, now), before) in new.iter_mut().zip(counted).zip(before) {
            // Counters that fell were reset.
            *new = now.checked_sub(before).unwrap_or(*now);
        }
        self.seconds.add(at, elapsed, &new);
        self.minutes.add(at, elapsed, &new);
    }

    pub(super) const fn seconds(&self) -> &Ring {
        &self.seconds
    }

    pub(super) const fn minutes(&self) -> &Ring {
        &self.minutes
    }
}

impl Ring {
    fn new(step: i64, most: usize) -> Self {
        Self {
            step,
            most,
            slots: VecDeque::with_capacity(most),
        }
    }

    fn add(&mut self, at: i64, elapsed: Duration, packets: &ByReason) {
        let at = at - at.rem_euclid(self.step);
        match self.slots.back_mut() {
            // Also if the clock was set back: the slots' times never fall.
            Some(slot) if at <= slot.at => {
                slot.covered += elapsed;
                for (sum, more) in slot.packets.iter_mut().zip(packets) {
                    *sum += more;
                }
            }
            _ => {
                if self.slots.len() >= self.most {
                    self.slots.pop_front();
                }
                self.slots.push_back(Slot {
                    at,
                    covered: elapsed,
                    packets: *packets,
                });
            }
        }
    }

    pub(super) const fn step(&self) -> i64 {
        self.step
    }

    pub(super) fn slots(&self) -> impl DoubleEndedIterator<Item = &Slot> {
        self.slots.iter()
    }
}

impl Slot {
    /// Returns packets per second for one reason, by its position in [`Reason::ALL`].
    pub(super) fn rate(&self, reason: usize) -> f64 {
        let seconds = self.covered.as_secs_f64();
        if seconds <= 0.0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "nobody reads so many digits")]
        let packets = self.packets[reason] as f64;
        packets / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn counted(first: u64) -> ByReason {
        let mut counted = [0; REASONS];
        counted[0] = first;
        counted
    }

    fn rates(ring: &Ring) -> Vec<(i64, f64)> {
        ring.slots().map(|slot| (slot.at, slot.rate(0))).collect()
    }

    #[test]
    fn rates_by_second_and_by_minute() {
        let mut history = History::new();
        // Packets before the start belong to no slot.
        history.record(59, SECOND, &counted(1_000));
        history.record(60, SECOND, &counted(1_010));
        history.record(62, 2 * SECOND, &counted(1_040));
        history.record(120, 58 * SECOND, &counted(1_040));
        assert_eq!(
            rates(history.seconds()),
            [(60, 10.0), (62, 15.0), (120, 0.0)]
        );
        let minutes = rates(history.minutes());
        assert_eq!(minutes[0].0, 60);
        assert!((minutes[0].1 - 40.0 / 3.0).abs() < 1e-9, "{minutes:?}");
        assert_eq!(minutes[1], (120, 0.0));
    }

    #[test]
    fn counters_may_begin_anew_and_clocks_be_set_back() {
        let mut history = History::new();
        history.record(100, SECOND, &counted(50));
        history.record(101, SECOND, &counted(5));
        history.record(90, SECOND, &counted(6));
        assert_eq!(rates(history.seconds()), [(101, 3.0)]);
    }

    #[test]
    fn it_does_not_grow() {
        let mut history = History::new();
        for second in 0..3 * 24 * 3600 {
            history.record(second, SECOND, &counted(u64::MAX));
        }
        assert_eq!(history.seconds().slots.len(), 600);
        assert_eq!(history.minutes().slots.len(), 24 * 60);
        assert!(history.minutes().slots.capacity() <= 2 * 24 * 60);
        let slots = 600 + 24 * 60;
        assert!(slots * size_of::<Slot>() < 1 << 20, "it takes a megabyte");
    }
}
