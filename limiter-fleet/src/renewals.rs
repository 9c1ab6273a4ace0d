//! Renewals of all loans between two nodes, as one of the two counts them.

/// The renewals of the loans in one direction between two nodes.
///
/// A renewal lengthens every loan that still runs. To cost the same for any number of loans, each loan
/// keeps its original end, and this type computes the current one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renewals {
    /// Start of the current unbroken run of renewals.
    began: u64,
    /// The end of the last renewal.
    until: u64,
}

impl Renewals {
    /// Renews all loans that still run at `now`.
    pub(crate) fn renew(&mut self, now: u64, until: u64) {
        if now >= self.until {
            self.began = now;
        }
        self.until = self.until.max(until);
    }

    /// Returns when a loan ends that was given until `until`. Renewals lengthen it up to `last`.
    pub(crate) fn end(&self, until: u64, last: u64) -> u64 {
        if until > self.began {
            until.max(self.until.min(last))
        } else {
            // It had ended before the run began.
            until
        }
    }

    /// Returns until when a loan lasts at least while [`Self::hold`] stays true.
    pub(crate) fn calm(&self, now: u64, until: u64, last: u64) -> u64 {
        if self.hold(now) && until > self.began {
            until.max(last)
        } else {
            self.end(until, last)
        }
    }

    /// Returns whether the last renewal still runs.
    pub(crate) const fn hold(&self, now: u64) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Model: each renewal lengthens each loan.
        #[test]
        fn loans_end_as_if_each_were_renewed_by_itself(
            steps in prop::collection::vec((1_u64..30, any::<bool>()), 1..40),
            last in 20_u64..200,
        ) {
            const LENGTH: u64 = 20;
            let mut renewals = Renewals::default();
            // The original end, the current end, and the last possible end.
            let mut loans: Vec<(u64, u64, u64)> = Vec::new();
            let mut now = 0;
            for (pause, is_loan) in steps {
                now += pause;
                let until = now + LENGTH;
                if is_loan {
                    loans.push((until, until, now + last));
                } else {
                    renewals.renew(now, until);
                    for (_, end, last) in loans.iter_mut().filter(|(_, end, _)| *end > now) {
                        *end = until.min(*last).max(*end);
                    }
                }
                for (given, end, last) in &loans {
                    // The exact end of a finished loan does not matter.
                    let ends = [*given, *end].map(|kept| renewals.end(kept, *last).max(now));
                    prop_assert_eq!(ends, [(*end).max(now); 2]);
                }
            }
        }
    }
}
