//! The report on a bucket after a decision, as Boulder's spend returns it.

use super::Gcra;
use crate::strategy::Report;

impl Gcra {
    /// Reports on a bucket with the TAT `tat` after a decision on `cost` tokens at `now` ticks.
    ///
    /// Boulder has one formula for allowed and one for denied requests. In terms of the TAT stored
    /// afterwards they are the same: with `debt` = max(0, TAT − now), remaining = (burst offset −
    /// debt) / emission interval, retry in = max(0, cost × emission interval − (burst offset −
    /// debt)), reset in = `debt`. If the clock went back and the debt exceeds the bucket, zero
    /// tokens remain.
    #[must_use]
    pub const fn report(&self, now: u64, tat: Option<u64>, cost: u64) -> Report {
        let level = self.level(now, tat);
        let retry_in_ns = if cost > self.burst {
            None
        } else {
            let debt = match tat {
                Some(tat) => tat.saturating_sub(now),
                None => 0,
            };
            let missing = self
                .emission_interval
                .saturating_mul(cost)
                .saturating_add(debt)
                .saturating_sub(self.burst_offset);
            Some(self.ns_rounded_up(missing))
        };
        Report {
            remaining: level.remaining,
            retry_in_ns,
            reset_in_ns: level.reset_in_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const NOW: u64 = 1_000_000 * MS;

    /// 20 per second, burst 20, with `debt_ms` of debt.
    fn check(debt_ms: u64, cost: u64, remaining: u64, retry_in_ms: Option<u64>) {
        let gcra = Gcra::new(20, 20, 1_000 * MS).unwrap();
        let expected = Report {
            remaining,
            retry_in_ns: retry_in_ms.map(|ms| ms * MS),
            reset_in_ns: debt_ms * MS,
        };
        let reported = gcra.report(NOW, Some(NOW + debt_ms * MS), cost);
        assert_eq!(reported, expected, "debt {debt_ms} ms, cost {cost}");
    }

    #[test]
    fn a_request_of_one_token() {
        // After an allowed request: the next one passes now, or after a wait.
        check(50, 1, 19, Some(0));
        check(950, 1, 1, Some(0));
        check(1_000, 1, 0, Some(50));
        // After a denied request.
        check(951, 1, 0, Some(1));
        check(999, 1, 0, Some(49));
    }

    #[test]
    fn a_request_of_several_tokens() {
        check(500, 10, 10, Some(0));
        check(550, 10, 9, Some(50));
        check(1_000, 20, 0, Some(1_000));
        check(0, 20, 20, Some(0));
    }

    #[test]
    fn a_probe_is_never_told_to_wait() {
        check(0, 0, 20, Some(0));
        check(1_000, 0, 0, Some(0));
    }

    #[test]
    fn more_than_a_full_bucket_never_passes() {
        check(0, 21, 20, None);
        check(1_000, u64::MAX, 0, None);
    }

    #[test]
    fn a_clock_that_went_back_finds_no_less_than_nothing() {
        check(1_500, 1, 0, Some(550));
    }

    #[test]
    fn a_missing_bucket_is_full() {
        let gcra = Gcra::new(20, 20, 1_000 * MS).unwrap();
        let full = Report {
            remaining: 20,
            retry_in_ns: Some(0),
            reset_in_ns: 0,
        };
        assert_eq!(gcra.report(NOW, None, 20), full);
        assert_eq!(gcra.report(NOW, Some(NOW - 1), 20), full);
    }
}
