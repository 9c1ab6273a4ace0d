//! The bucket that the protocol changes, by what the kernel offers.
//!
//! The kernel leaves a bucket as full as it was when its rate moves. So a slower rate takes the same part of
//! the tokens as of the share, as it should; and a faster one would make tokens, which are charged before.
//!
//! * **Smaller**: the slower rate is in force, and no packet is decided by the faster one any more, before
//!   the protocol hears of it, and so before anybody else may. Until then the part that goes was this
//!   node's; so the tokens that it gained meanwhile go with it.
//! * **Larger**: the tokens are charged first, and the faster rate is in force when all is done, as only then
//!   it is known until when.

use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{Bucket, Share};
use limiter_policy::policy::in_common::interval_of_share;

use super::lever::Lever;

/// Longer than any clock runs.
const FOREVER: u64 = u64::MAX;

/// A bucket while the protocol changes it. Intervals are in nanoseconds.
pub(super) struct ShareBucket<'l, L> {
    lever: &'l L,
    /// The interval of the whole budget.
    whole: u64,
    /// Until when what is in force holds at least.
    until_ns: u64,
    /// The interval in force, or a longer one.
    in_force: u64,
    /// The interval of the share that the protocol has given.
    given: u64,
    error: Option<DatapathError>,
}

impl<'l, L: Lever> ShareBucket<'l, L> {
    /// Begins to change a bucket. `until_ns`: until when the last change holds.
    pub(super) fn new(lever: &'l L, whole: u64, until_ns: u64) -> Result<Self, DatapathError> {
        let in_force = lever.interval()?;
        Ok(Self {
            lever,
            whole,
            until_ns,
            in_force,
            given: in_force,
            error: None,
        })
    }

    /// Puts in force what the protocol has given, until a time; `None`: it does not end by itself. Returns
    /// the interval and its end. With an error, the protocol and the kernel may disagree.
    pub(super) fn finish(mut self, until_ns: Option<u64>) -> Result<(u64, u64), DatapathError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let until_ns = until_ns.unwrap_or(FOREVER);
        self.lever.set(self.given, until_ns)?;
        Ok((self.given, until_ns))
    }

    fn try_change(&mut self, to: Share, gained: u64) -> Result<u64, DatapathError> {
        let (before, after) = (self.given, interval_of_share(self.whole, to));
        let mut lost = 0;
        if after > before {
            if after > self.in_force {
                self.lever.set(after, self.until_ns)?;
                self.in_force = after;
                self.lever.wait()?;
            }
            lost = millitokens(self.lever.credit()?, before, after);
        } else if after < before {
            let credit = u128::from(self.lever.credit()?);
            // As many tokens at the faster rate are less time.
            let more = (credit * u128::from(before - after)).div_ceil(u128::from(before));
            self.lever.charge(narrowed(more))?;
        }
        self.given = after;
        let ns = u128::from(gained) * u128::from(after) / 1_000;
        if ns > 0 {
            self.lever.give(narrowed(ns))?;
        }
        Ok(lost)
    }
}

impl<L: Lever> Bucket for ShareBucket<'_, L> {
    fn change(&mut self, _now_ns: u64, to: Share, gained_millitokens: u64) -> u64 {
        if self.error.is_some() {
            return 0;
        }
        match self.try_change(to, gained_millitokens) {
            Ok(lost) => lost,
            Err(error) => {
                self.error = Some(error);
                0
            }
        }
    }
}

/// Returns by how many thousandths of a token less a credit is if an interval becomes longer, rounded down.
fn millitokens(credit: u64, before: u64, after: u64) -> u64 {
    let [credit, before, after] = [credit, before, after].map(u128::from);
    // A credit is at most 2^62, an interval 2^24.
    narrowed(credit * 1_000 * (after - before) / (before * after).max(1))
}

fn narrowed(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::fleet::shares::model::Model;

    /// Divided evenly by all shares here.
    const WHOLE: u64 = 1_200;
    const BURST: u64 = 10_000;

    fn part(percent: u64) -> Share {
        Share::billionths(percent * 10_000_000)
    }

    /// Changes shares one after another, each with tokens; returns what was lost and is left, in thousandths.
    fn after(model: &Model, steps: &[(u64, u64)]) -> (u64, u64) {
        let lever = model.lever();
        let mut bucket = ShareBucket::new(&lever, WHOLE, FOREVER).unwrap();
        let mut lost = 0;
        for (percent, gained) in steps {
            lost += bucket.change(0, part(*percent), *gained);
        }
        bucket.finish(None).unwrap();
        (lost, model.millitokens())
    }

    #[test]
    fn tokens_go_with_a_share_and_come_from_nowhere() {
        let model = Model::new(WHOLE, part(10), BURST);
        assert_eq!(model.millitokens(), 1_000_000);
        // A larger share has the same tokens.
        assert_eq!(after(&model, &[(50, 0)]), (0, 1_000_000));
        // Those that come with it are added, as many as fit.
        assert_eq!(after(&model, &[(50, 1_500_000)]), (0, 2_500_000));
        assert_eq!(after(&model, &[(50, 9_000_000)]), (0, 5_000_000));
        // A smaller one loses its part.
        assert_eq!(after(&model, &[(20, 0)]), (3_000_000, 2_000_000));
        // In one go: what the protocol does when a bank is given back and lends.
        assert_eq!(
            after(&model, &[(40, 1_000_000), (30, 0)]),
            (750_000, 2_250_000)
        );
        assert_eq!(model.millitokens(), 2_250_000);
    }

    #[test]
    fn a_larger_share_is_in_force_only_at_the_end() {
        let model = Model::new(WHOLE, part(10), BURST);
        let lever = model.lever();
        let mut bucket = ShareBucket::new(&lever, WHOLE, FOREVER).unwrap();
        bucket.change(0, part(50), 0);
        assert_eq!(lever.interval().unwrap(), 12_000);
        // Smaller than what was given, and still larger than what is in force.
        bucket.change(0, part(20), 0);
        assert_eq!((lever.interval().unwrap(), model.waits()), (12_000, 0));
        bucket.finish(None).unwrap();
        assert_eq!(lever.interval().unwrap(), 6_000);
        let mut bucket = ShareBucket::new(&lever, WHOLE, FOREVER).unwrap();
        bucket.change(0, part(10), 0);
        assert_eq!((lever.interval().unwrap(), model.waits()), (12_000, 1));
        bucket.finish(None).unwrap();
    }
}
