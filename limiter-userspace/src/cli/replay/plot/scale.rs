//! Maps numbers to positions on an axis, and finds the round numbers to mark on it.
//!
//! Positions are integers, in tenths of a pixel.

/// An axis from 0 to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    end: u64,
    /// Its length, in tenths of a pixel.
    length: u64,
}

impl Scale {
    pub(super) fn new(end: u64, length: u64) -> Self {
        Self {
            end: end.max(1),
            length,
        }
    }

    /// Returns a value's distance from 0, in tenths of a pixel.
    pub(super) fn distance(self, value: u64) -> u64 {
        let distance = u128::from(value) * u128::from(self.length) / u128::from(self.end);
        u64::try_from(distance).unwrap_or(u64::MAX)
    }

    /// Returns about four to ten round multiples of `unit`, including 0.
    pub(super) fn ticks(self, unit: u64) -> impl Iterator<Item = u64> {
        let step = round_up(self.end.div_ceil(unit).div_ceil(8)).saturating_mul(unit);
        let end = self.end;
        (0..).map_while(move |tick: u64| tick.checked_mul(step).filter(|at| *at <= end))
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten.
fn round_up(number: u64) -> u64 {
    let mut power: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            let round = power.saturating_mul(factor);
            if round >= number {
                return round;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// Returns the largest unit of time that fits into `ns` at least four times, and its name.
pub(super) fn time_unit(ns: u64) -> (u64, &'static str) {
    const UNITS: [(u64, &str); 5] = [
        (86_400_000_000_000, "days"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
    ];
    let some = UNITS.into_iter().find(|(unit, _)| ns / unit >= 4);
    some.unwrap_or((1_000_000, "ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let check = |end, unit, expected: &[u64]| {
            let ticks: Vec<_> = Scale::new(end, 1_000).ticks(unit).collect();
            assert_eq!(ticks, expected, "{end}");
        };
        check(0, 1, &[0, 1]);
        check(4, 1, &[0, 1, 2, 3, 4]);
        check(1_234, 1, &[0, 200, 400, 600, 800, 1_000, 1_200]);
        check(45, 10, &[0, 10, 20, 30, 40]);
        assert!(Scale::new(u64::MAX, 1).ticks(1).count() < 12);
    }

    #[test]
    fn units_leave_some_to_count() {
        assert_eq!(time_unit(0).1, "ms");
        assert_eq!(time_unit(3_999_000_000).1, "ms");
        assert_eq!(time_unit(4_000_000_000).1, "s");
        assert_eq!(time_unit(u64::MAX).1, "days");
    }
}
