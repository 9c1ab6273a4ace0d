//! The bucket that the protocol changes, by what the kernel offers.
//!
//! The kernel leaves a bucket as full as it was when its share moves. So a smaller one takes the same part of
//! the tokens, as it should; and a larger one would make tokens, which are charged before.
//!
//! * **Smaller**: the smaller share is in force, and no packet is decided by the larger one any more, before
//!   the protocol hears of it, and so before anybody else may. Until then the part that goes was this
//!   node's; so the tokens that it gained meanwhile go with it.
//! * **Larger**: the tokens are charged first, and the larger share is in force when all is done, as only then
//!   it is known until when.

use limiter_common::strategy::gcra::Parts;
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{Bucket, Share};
use limiter_policy::policy::in_common::parts;

use super::lever::Lever;

/// Longer than any clock runs.
const FOREVER: u64 = u64::MAX;

/// A bucket while the protocol changes it.
pub(super) struct ShareBucket<'l, L> {
    lever: &'l L,
    /// What a token costs at the whole, in ticks.
    whole: u64,
    /// Until when what is in force holds at least.
    until_ns: u64,
    /// The share in force, or a smaller one.
    in_force: Parts,
    /// The share that the protocol has given.
    given: Parts,
    error: Option<DatapathError>,
}

impl<'l, L: Lever> ShareBucket<'l, L> {
    /// Begins to change a bucket. `until_ns`: until when the last change holds.
    pub(super) fn new(lever: &'l L, until_ns: u64) -> Result<Self, DatapathError> {
        let in_force = lever.share()?;
        Ok(Self {
            lever,
            whole: lever.whole(),
            until_ns,
            in_force,
            given: in_force,
            error: None,
        })
    }

    /// Puts in force what the protocol has given, until a time; `None`: it does not end by itself. Returns
    /// the share and its end. With an error, the protocol and the kernel may disagree.
    pub(super) fn finish(mut self, until_ns: Option<u64>) -> Result<(Parts, u64), DatapathError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let until_ns = until_ns.unwrap_or(FOREVER);
        self.lever.set(self.given, until_ns)?;
        Ok((self.given, until_ns))
    }

    fn try_change(&mut self, to: Share, gained: u64) -> Result<u64, DatapathError> {
        let (before, after) = (self.given, parts(to).unwrap_or(Parts::LEAST));
        let mut lost = 0;
        if after < before {
            if after < self.in_force {
                self.lever.set(after, self.until_ns)?;
                self.in_force = after;
                self.lever.wait()?;
            }
            lost = self.millitokens(self.lever.credit()?, before.number() - after.number());
        } else if after > before {
            let credit = u128::from(self.lever.credit()?);
            // As many tokens of a larger share are a smaller part of it.
            let more = u128::from(after.number() - before.number());
            let more = (credit * more).div_ceil(u128::from(after.number()));
            self.lever.charge(narrowed(more))?;
        }
        self.given = after;
        let ticks = u128::from(gained) * self.token() / (1_000 * u128::from(after.number()));
        if ticks > 0 {
            self.lever.give(narrowed(ticks))?;
        }
        Ok(lost)
    }

    /// Returns how many thousandths of a token a part of a credit is, rounded down.
    fn millitokens(&self, credit: u64, part: u32) -> u64 {
        // A credit is at most 2^62, a part 10^7.
        narrowed(u128::from(credit) * 1_000 * u128::from(part) / self.token().max(1))
    }

    /// Returns what a token costs at the smallest share, in ticks.
    fn token(&self) -> u128 {
        u128::from(self.whole) * u128::from(Parts::WHOLE.number())
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

fn narrowed(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use limiter_common::strategy::gcra::Gcra;

    use super::*;
    use crate::daemon::fleet::shares::model::Model;

    /// Divided evenly by all shares here.
    const WHOLE: u64 = 1_200;
    const BURST: u64 = 10_000;

    fn part(percent: u64) -> Share {
        Share::billionths(percent * 10_000_000)
    }

    fn model() -> Model {
        Model::new(
            Gcra::new(BURST, 1, WHOLE).unwrap(),
            parts(part(10)).unwrap(),
        )
    }

    /// Changes shares one after another, each with tokens; returns what was lost and is left, in thousandths.
    fn after(model: &Model, steps: &[(u64, u64)]) -> (u64, u64) {
        let lever = model.lever();
        let mut bucket = ShareBucket::new(&lever, FOREVER).unwrap();
        let mut lost = 0;
        for (percent, gained) in steps {
            lost += bucket.change(0, part(*percent), *gained);
        }
        bucket.finish(None).unwrap();
        (lost, model.millitokens())
    }

    #[test]
    fn tokens_go_with_a_share_and_come_from_nowhere() {
        let model = model();
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
        let model = model();
        let lever = model.lever();
        let mut bucket = ShareBucket::new(&lever, FOREVER).unwrap();
        bucket.change(0, part(50), 0);
        let tenth = parts(part(10)).unwrap();
        assert_eq!(lever.share().unwrap(), tenth);
        // Smaller than what was given, and still larger than what is in force.
        bucket.change(0, part(20), 0);
        assert_eq!((lever.share().unwrap(), model.waits()), (tenth, 0));
        bucket.finish(None).unwrap();
        assert_eq!(lever.share().unwrap(), parts(part(20)).unwrap());
        let mut bucket = ShareBucket::new(&lever, FOREVER).unwrap();
        bucket.change(0, part(10), 0);
        assert_eq!((lever.share().unwrap(), model.waits()), (tenth, 1));
        bucket.finish(None).unwrap();
    }
}
