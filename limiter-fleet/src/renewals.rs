//! The loans between two nodes that are renewed together, as one side of the two counts them.

/// The renewals of a node's loans to another, or from it.
///
/// A renewal lengthens each loan that has not ended. So that it costs the same however many there are, a loan keeps the
/// end that it was given with, and this says how much later it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Renewals {
    /// The first of those of which each came before the one before it was over.
    began: u64,
    /// Until when the last one renews.
    until: u64,
}

impl Renewals {
    /// Renews all that has not ended `now`.
    pub(crate) fn renew(&mut self, now: u64, until: u64) {
        if now >= self.until {
            self.began = now;
        }
        self.until = self.until.max(until);
    }

    /// Returns when a loan ends that was given until a time, and may be renewed until the `last`.
    pub(crate) fn end(&self, until: u64, last: u64) -> u64 {
        if until > self.began {
            until.max(self.until.min(last))
        } else {
            // It had ended before.
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

    /// Returns whether the last one is not over.
    pub(crate) const fn hold(&self, now: u64) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As if each renewal had lengthened each loan.
        #[test]
        fn loans_end_as_if_each_were_renewed_by_itself(
            steps in prop::collection::vec((1_u64..30, any::<bool>()), 1..40),
            last in 20_u64..200,
        ) {
            const LENGTH: u64 = 20;
            let mut renewals = Renewals::default();
            // As they were given, and as they are.
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
                    // It does not matter when it ended.
                    let said = [*given, *end].map(|kept| renewals.end(kept, *last).max(now));
                    prop_assert_eq!(said, [(*end).max(now); 2]);
                }
            }
        }
    }
}
