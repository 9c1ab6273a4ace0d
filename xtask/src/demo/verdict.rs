//! Computes the outcomes that a limit allows, and checks a client's outcome.

use std::ops::RangeInclusive;

use super::daemon::LimitState;

/// The least that a saturated limit passes, in percent of its allowance.
const LEAST_PERCENT: u64 = 99;

/// A client's expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// All packets pass.
    Everything,
    /// All packets that its limit allows pass, and not one more.
    ItsLimit,
    /// At most the packets that its limit allows pass; another limit may allow less.
    WithinItsLimit,
}

/// The times of packets, in nanoseconds of CLOCK_MONOTONIC.
///
/// The exact times in the datapath are unknown. It saw the first packet after the sending began, and the last
/// passed packet before its reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Just before the first packet was sent.
    pub(super) first: u64,
    /// Just after the last packet was sent.
    pub(super) sent: u64,
    /// Just after the last packet that passed was received.
    pub(super) received: u64,
}

impl Window {
    /// Returns the window that covers both.
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            sent: self.sent.max(other.sent),
            received: self.received.max(other.received),
        }
    }

    fn shortest_ns(self) -> u64 {
        self.sent.saturating_sub(self.first)
    }

    fn longest_ns(self) -> u64 {
        let last = self.received.max(self.sent);
        last.saturating_sub(self.first)
    }
}

/// The most that a limit can pass in the window: the exact value lies between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    shortest: u64,
    longest: u64,
}

impl Allowance {
    pub(super) fn new(limit_state: &LimitState, window: Window) -> Self {
        Self {
            shortest: most(limit_state, window.shortest_ns()),
            longest: most(limit_state, window.longest_ns()),
        }
    }

    /// Returns the bound that must hold.
    pub(super) fn most(self) -> u64 {
        self.longest
    }

    fn saturated(self) -> RangeInclusive<u64> {
        (self.shortest * LEAST_PERCENT).div_ceil(100)..=self.longest
    }
}

/// Returns a full bucket, and the packets that came back since.
fn most(limit_state: &LimitState, elapsed_ns: u64) -> u64 {
    let refilled = u128::from(elapsed_ns) * u128::from(limit_state.count)
        / u128::from(limit_state.period_ns.max(1));
    limit_state
        .burst
        .saturating_add(u64::try_from(refilled).unwrap_or(u64::MAX))
}

/// Describes a client with the expected outcome, or returns an error with the difference.
pub(super) fn judge(
    expectation: Expectation,
    sent: u64,
    passed: u64,
    allowance: Allowance,
) -> Result<String, String> {
    if passed > allowance.most() {
        return Err(format!("{} more than allowed", passed - allowance.most()));
    }
    match expectation {
        Expectation::Everything if passed == sent => Ok("all passed".to_owned()),
        Expectation::Everything => Err(format!("{} missing", sent.abs_diff(passed))),
        Expectation::WithinItsLimit => Ok("within its limit".to_owned()),
        Expectation::ItsLimit => {
            let expected = allowance.saturated();
            if expected.contains(&passed) {
                Ok("all the limit allows".to_owned())
            } else {
                Err(format!("less than {}", expected.start()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn limit_state(burst: u64, count: u64, period_ns: u64) -> LimitState {
        LimitState {
            limit: "PacketsPerIPAddress".to_owned(),
            burst,
            count,
            period_ns,
            remaining: 0,
            retry_in_ns: 0,
        }
    }

    #[test]
    fn the_most_is_the_burst_and_one_each_emission_interval() {
        for (burst, count, period_ns, elapsed_ns, expected) in [
            (200, 200, SECOND, 0, 200),
            (200, 200, SECOND, 4_999_999, 200),
            (200, 200, SECOND, 5_000_000, 201),
            (200, 200, SECOND, 10 * SECOND, 2200),
            (20, 20, 60 * SECOND, 10 * SECOND, 23),
            (1, 3, 10, 10, 4),
            (1, u64::MAX, 1, u64::MAX, u64::MAX),
        ] {
            let most = most(&limit_state(burst, count, period_ns), elapsed_ns);
            assert_eq!(
                most, expected,
                "{burst} {count}/{period_ns} in {elapsed_ns}"
            );
        }
    }

    #[test]
    fn judges() {
        use Expectation::{Everything, ItsLimit, WithinItsLimit};
        let window = Window {
            first: SECOND,
            sent: 11 * SECOND,
            received: 11 * SECOND + 10_000_000,
        };
        // At most 2202; at least 99 % of 2200, which is 2178.
        let allowance = Allowance::new(&limit_state(200, 200, SECOND), window);
        assert_eq!(allowance.most(), 2202);
        for (expectation, sent, passed, good) in [
            (Everything, 1000, 1000, true),
            (Everything, 1000, 999, false),
            (Everything, 999, 1000, false),
            (Everything, 3000, 3000, false),
            (ItsLimit, 200_000, 2203, false),
            (ItsLimit, 200_000, 2202, true),
            (ItsLimit, 200_000, 2178, true),
            (ItsLimit, 200_000, 2177, false),
            (WithinItsLimit, 1500, 0, true),
            (WithinItsLimit, 1500, 1100, true),
            (WithinItsLimit, 5000, 2203, false),
        ] {
            let verdict = judge(expectation, sent, passed, allowance);
            assert_eq!(
                verdict.is_ok(),
                good,
                "{expectation:?} {sent} {passed}: {verdict:?}"
            );
        }
    }

    #[test]
    fn a_union_is_from_the_first_to_the_last() {
        let window = |first, sent, received| Window {
            first,
            sent,
            received,
        };
        let union = window(5, 10, 12).union(window(3, 11, 11));
        assert_eq!(union, window(3, 11, 12));
        assert_eq!((union.shortest_ns(), union.longest_ns()), (8, 9));
        // Nothing passed.
        assert_eq!(window(5, 10, 0).longest_ns(), 5);
    }
}
