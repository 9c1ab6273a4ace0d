//! The bucket that the protocol changes, by what the kernel offers.
//!
//! The kernel leaves a bucket as full as it was when its share moves. So a smaller share takes the same part of
//! the tokens, as it should; and a larger one would make tokens, which are charged before.
//!
//! * **Smaller**: the smaller share is in force, and no packet is decided by the larger one any more, before
//!   the protocol hears of it, and so before anybody else may. The protocol is rehearsed for that
//!   ([`Rehearsal`]), for many owners, and all wait once. Until then the part that goes was this
//!   node's; so the tokens that it gained meanwhile go with it.
//! * **Larger**: the tokens are charged first, but for those that come with it, and the larger share is in force when all is
//!   done, as only then it is known until when.

use limiter_common::{owner::BucketKey, strategy::gcra::Parts};
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{Bucket, Share};
use limiter_policy::policy::in_common::parts;

use super::lever::{Host, Lever};

/// Returns a share as the kernel has it. No node has less than a floor, which is more than the smallest.
pub(super) fn parts_of(share: Share) -> Parts {
    parts(share).unwrap_or(Parts::LEAST)
}

/// A bucket that only notes the smallest share that it was told to have.
pub(super) struct Rehearsal {
    pub(super) least: Share,
}

impl Bucket for Rehearsal {
    fn change(&mut self, _now_ns: u64, to: Share, _gained_millitokens: u64) -> u64 {
        self.least = self.least.min(to);
        0
    }
}

/// A bucket while the protocol changes it. No packet is decided by a larger share than the smallest that it
/// will be told to have.
pub(super) struct ShareBucket<H: Host> {
    host: H,
    owner: BucketKey,
    /// `None`: it was not needed yet.
    lever: Option<H::Lever>,
    /// The share by which packets are decided, at most.
    least: Parts,
    /// The share for which its tokens are right.
    pub(super) share: Parts,
    pub(super) error: Option<ChangeError>,
}

/// Why a bucket is not as the protocol has it.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    #[error("{0}")]
    Refused(#[from] DatapathError),
    #[error("its limit is in common no longer")]
    Gone,
    #[error("a loan ended while it was counted")]
    Overtaken,
}

impl<H: Host> ShareBucket<H> {
    /// Begins to change a bucket whose tokens are right for that share, while packets are decided by the `least` that it will be
    /// told to have.
    pub(super) const fn new(host: H, owner: BucketKey, share: Parts, least: Parts) -> Self {
        Self {
            host,
            owner,
            lever: None,
            least,
            share,
            error: None,
        }
    }

    fn lever(&mut self) -> Result<&H::Lever, ChangeError> {
        if self.lever.is_none() {
            self.lever = self.host.lever(&self.owner);
        }
        self.lever.as_ref().ok_or(ChangeError::Gone)
    }

    fn try_change(&mut self, to: Parts, gained: u64) -> Result<u64, ChangeError> {
        let before = self.share;
        debug_assert!(to >= self.least, "it was not rehearsed");
        if to == before && gained == 0 {
            return Ok(0);
        }
        let lever = self.lever()?;
        let (mut lost, mut charged) = (0, 0);
        if to < before {
            lost = millitokens(
                lever.credit()?,
                lever.whole(),
                before.number() - to.number(),
            );
        } else if to > before {
            let credit = u128::from(lever.credit()?);
            // As many tokens at the larger share are less of a full bucket.
            let stays = credit * u128::from(before.number()) / u128::from(to.number());
            charged = credit - stays;
        }
        let whole = u128::from(gained) * u128::from(lever.whole());
        let given = whole * u128::from(Parts::WHOLE.number()) / (1_000 * u128::from(to.number()));
        // In one go: the kernel is called for each.
        if given >= charged {
            lever.give(narrowed(given - charged))?;
        } else {
            lever.charge(narrowed(charged - given))?;
        }
        self.share = to;
        Ok(lost)
    }
}

impl<H: Host> Bucket for ShareBucket<H> {
    fn change(&mut self, _now_ns: u64, to: Share, gained_millitokens: u64) -> u64 {
        if self.error.is_some() {
            return 0;
        }
        match self.try_change(parts_of(to), gained_millitokens) {
            Ok(lost) => lost,
            Err(error) => {
                self.error = Some(error);
                0
            }
        }
    }
}

/// Returns how many thousandths of a token a credit is at so many parts of the whole, rounded down.
fn millitokens(credit: u64, whole: u64, parts: u32) -> u64 {
    // A credit is at most 2^62, a number of parts 2^24, a thousand 2^10.
    let of_parts = u128::from(credit) * u128::from(parts) * 1_000;
    narrowed(of_parts / (u128::from(Parts::WHOLE.number()) * u128::from(whole)).max(1))
}

fn narrowed(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use limiter_common::{
        limit::LimitId,
        strategy::gcra::{Gcra, OwnerShare, ShareWord},
    };

    use super::*;
    use crate::daemon::fleet::shares::model::Model;

    const BURST: u64 = 10_000;
    const OWNER: BucketKey = BucketKey::of_host(LimitId(32));

    fn part(percent: u64) -> Share {
        Share::billionths(percent * 10_000_000)
    }

    fn model() -> Model {
        let whole = Gcra::new(BURST, 1, 1_200).unwrap();
        Model::new(whole, parts_of(part(10)))
    }

    /// Changes shares one after another, each with tokens; returns what was lost and is left, in thousandths.
    fn after(model: &Model, steps: &[(u64, u64)]) -> (u64, u64) {
        let mut bucket = ShareBucket::new(model, OWNER, model.share(&OWNER), Parts::LEAST);
        let mut lost = 0;
        for (percent, gained) in steps {
            lost += bucket.change(0, part(*percent), *gained);
        }
        assert!(bucket.error.is_none());
        let word = ShareWord::forever(bucket.share);
        let share = OwnerShare::new(word, bucket.share);
        model.set_owners(&[(OWNER, share)]).unwrap();
        (lost, model.millitokens(&OWNER))
    }

    #[test]
    fn tokens_go_with_a_share_and_come_from_nowhere() {
        let model = model();
        assert_eq!(model.millitokens(&OWNER), 1_000_000);
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
        assert_eq!(model.millitokens(&OWNER), 2_250_000);
    }
}
