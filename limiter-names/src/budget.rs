//! How many pieces are read in a time.

const SECOND_NS: u64 = 1_000_000_000;

/// Lets so many pieces pass in a second, and a tenth of that at once.
#[derive(Debug)]
pub(crate) struct Budget {
    interval_ns: u64,
    /// When nothing of it will be spent.
    full_ns: u64,
}

impl Budget {
    pub(crate) fn new(a_second: u32) -> Self {
        Self {
            interval_ns: SECOND_NS / u64::from(a_second.max(1)),
            full_ns: 0,
        }
    }

    /// Takes one piece, if there is room for it. A clock that goes back makes no room.
    pub(crate) fn take(&mut self, now_ns: u64) -> bool {
        let most_ns = (SECOND_NS / 10).max(self.interval_ns);
        let begin_ns = self.full_ns.max(now_ns);
        match begin_ns.checked_add(self.interval_ns) {
            Some(full_ns) if full_ns - now_ns <= most_ns => {
                self.full_ns = full_ns;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &mut Budget, now_ns: u64) -> usize {
        (0..1000).take_while(|_| budget.take(now_ns)).count()
    }

    #[test]
    fn a_tenth_of_a_second_at_once_and_no_more_than_its_rate_later() {
        let mut budget = Budget::new(1000);
        assert_eq!(taken(&mut budget, 5 * SECOND_NS), 100);
        assert_eq!(taken(&mut budget, 5 * SECOND_NS + 10_500_000), 10);
        assert_eq!(taken(&mut budget, 3 * SECOND_NS), 0);
        assert_eq!(taken(&mut budget, 6 * SECOND_NS), 100);
        let all: usize = (1..=1000)
            .map(|at| taken(&mut budget, 7 * SECOND_NS + at * 1_000_000))
            .sum();
        assert_eq!(all, 100 + 999);
    }

    #[test]
    fn the_least_budget_is_one_piece_at_a_time() {
        for a_second in [0, 1] {
            let mut budget = Budget::new(a_second);
            assert_eq!(taken(&mut budget, 0), 1);
            assert_eq!(taken(&mut budget, SECOND_NS - 1), 0);
            assert_eq!(taken(&mut budget, SECOND_NS), 1);
        }
        assert_eq!(taken(&mut Budget::new(1000), u64::MAX), 0);
    }
}
