//! The demand of packets for a limit.

/// The number of looks whose largest rate counts: what comes unevenly must not lose its share at once.
const LOOKS: usize = 2;

const SECOND_NS: u128 = 1_000_000_000;

/// The rate at which packets want tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    /// How many were wanted at the last look, and when it was, in nanoseconds.
    last: Option<(u64, u64)>,
    /// By the last looks, in tokens a second.
    rates: [u64; LOOKS],
}

impl Demand {
    /// Looks at how many tokens were wanted by now; returns how many are a second.
    pub(super) fn look(&mut self, wanted: u64, now_ns: u64) -> u64 {
        if let Some((before, at_ns)) = self.last.replace((wanted, now_ns)) {
            // Counters begin anew with other maps.
            let tokens = u128::from(wanted.saturating_sub(before));
            let passed = u128::from(now_ns.saturating_sub(at_ns).max(1));
            // Mostly there are none.
            let rate = if tokens == 0 {
                0
            } else {
                tokens * SECOND_NS / passed
            };
            self.rates.rotate_right(1);
            self.rates[0] = u64::try_from(rate).unwrap_or(u64::MAX);
        }
        self.rates.into_iter().max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_last_looks_counts() {
        const STEP: u64 = 200_000_000;
        let mut demand = Demand::default();
        assert_eq!(demand.look(1_000, STEP), 0);
        assert_eq!(demand.look(1_200, 2 * STEP), 1_000);
        assert_eq!(demand.look(1_200, 3 * STEP), 1_000);
        assert_eq!(demand.look(1_200, 4 * STEP), 0);
        assert_eq!(demand.look(5, 5 * STEP), 0, "other counters");
        assert_eq!(demand.look(25, 6 * STEP), 100);
    }
}
