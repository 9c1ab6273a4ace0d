//! The bucket that the protocol changes, built on the kernel's operations.
//!
//! The kernel keeps a bucket's fill level when its share changes. So a smaller share takes its fraction of
//! the tokens, as the protocol wants. A larger share would create tokens, so they are charged in advance.
//!
//! * **Smaller**: the smaller share is in force, and all programs have stopped using the larger one, before
//!   the protocol, and so any other node, can learn of it. The protocol is planned first ([`Rehearsal`]),
//!   for many owners, with one wait for all. Until then the released part was still this node's, so the
//!   tokens gained meanwhile go with it.
//! * **Larger**: the tokens are charged first, except the ones that come with the share. The larger share
//!   is in force only at the end, when its time is known.

use limiter_common::{key::BucketKey, strategy::gcra::Parts};
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{Bucket, Share};
use limiter_policy::policy::shared_limits::parts;

use super::lever::{Host, Lever};

/// Converts a share to the kernel's parts. The floor of a node is above the smallest number of parts.
pub(super) fn parts_of(share: Share) -> Parts {
    parts(share).unwrap_or(Parts::LEAST)
}

/// A bucket that only records the smallest share set.
pub(super) struct Rehearsal {
    pub(super) least: Share,
}

impl Bucket for Rehearsal {
    fn change(&mut self, _now_ns: u64, to: Share, _gained_millitokens: u64) -> u64 {
        self.least = self.least.min(to);
        0
    }
}

/// A bucket while the protocol changes it. No packet uses a larger share than the smallest that the
/// protocol will set.
pub(super) struct ShareBucket<H: Host> {
    host: H,
    owner: BucketKey,
    /// `None`: not needed so far.
    lever: Option<H::Lever>,
    /// The most that packets use now.
    least: Parts,
    /// The share that the bucket's tokens match.
    pub(super) share: Parts,
    pub(super) error: Option<ChangeError>,
}

/// Why a bucket does not match the protocol.
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
    /// Starts to change a bucket with tokens that match `share`. Packets already use `least`, the smallest
    /// share that the protocol will set.
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
            // The same tokens fill less of a larger bucket.
            let stays = credit * u128::from(before.number()) / u128::from(to.number());
            charged = credit - stays;
        }
        let whole = u128::from(gained) * u128::from(lever.whole());
        let given = whole * u128::from(Parts::WHOLE.number()) / (1_000 * u128::from(to.number()));
        // One operation instead of two: each is a system call.
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

/// Converts a credit at so many parts of the whole to thousandths of a token, rounded down.
fn millitokens(credit: u64, whole: u64, parts: u32) -> u64 {
    // Cannot overflow: a credit is at most 2^62, the parts 2^24, a thousand 2^10.
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
        strategy::gcra::{Gcra, KeyShare, ShareWord},
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

    /// Sets shares one after another, each with new tokens; returns the tokens lost and left, in
    /// thousandths.
    fn after(model: &Model, steps: &[(u64, u64)]) -> (u64, u64) {
        let mut bucket = ShareBucket::new(model, OWNER, model.share(&OWNER), Parts::LEAST);
        let mut lost = 0;
        for (percent, gained) in steps {
            lost += bucket.change(0, part(*percent), *gained);
        }
        assert!(bucket.error.is_none());
        let word = ShareWord::forever(bucket.share);
        let share = KeyShare::new(word, bucket.share);
        model.set_key_shares(&[(OWNER, share)]).unwrap();
        (lost, model.millitokens(&OWNER))
    }

    #[test]
    fn tokens_go_with_a_share_and_come_from_nowhere() {
        let model = model();
        assert_eq!(model.millitokens(&OWNER), 1_000_000);
        // A larger share keeps the tokens.
        assert_eq!(after(&model, &[(50, 0)]), (0, 1_000_000));
        // New tokens are added, as many as fit.
        assert_eq!(after(&model, &[(50, 1_500_000)]), (0, 2_500_000));
        assert_eq!(after(&model, &[(50, 9_000_000)]), (0, 5_000_000));
        // A smaller share loses its fraction.
        assert_eq!(after(&model, &[(20, 0)]), (3_000_000, 2_000_000));
        // Together: as when a bank gets a share back and lends it.
        assert_eq!(
            after(&model, &[(40, 1_000_000), (30, 0)]),
            (750_000, 2_250_000)
        );
        assert_eq!(model.millitokens(&OWNER), 2_250_000);
    }
}
