//! The tokens of a bucket whose share changes.
//!
//! The kernel keeps a bucket's fill level when its share changes. So a smaller share takes its part of the tokens, and
//! a larger share would create some: they are charged, but for the tokens that come with a lease. Tokens of a lease are
//! in billionths of the whole burst.

use limiter_common::strategy::gcra::Parts;
use limiter_datapath::kernel::{DatapathError, MovingBucket};

/// Billionths in a part of the kernel's shares.
const BILLIONTHS: u128 = 1_000_000_000 / Parts::WHOLE.number() as u128;

/// Returns the tokens that a bucket has lost by a smaller share.
pub(super) fn lost(
    bucket: &MovingBucket<'_>,
    before: Parts,
    after: Parts,
) -> Result<u64, DatapathError> {
    let lost = before.number().saturating_sub(after.number());
    Ok(tokens_of(bucket.credit()?, lost, bucket.burst_offset()))
}

/// Prepares a bucket for a larger share, which comes with `tokens`.
pub(super) fn adjust(
    bucket: &MovingBucket<'_>,
    before: Parts,
    after: Parts,
    tokens: u64,
) -> Result<(), DatapathError> {
    match adjustment(
        bucket.credit()?,
        bucket.burst_offset(),
        (before, after),
        tokens,
    ) {
        Adjustment::Give(ticks) => bucket.give(ticks),
        Adjustment::Charge(ticks) => bucket.charge(ticks),
    }
}

/// Ticks to add to a bucket, or to take from it.
#[derive(Debug, PartialEq, Eq)]
enum Adjustment {
    Give(u64),
    Charge(u64),
}

/// Returns the tokens in so many parts of a bucket with `credit` of `full` ticks.
fn tokens_of(credit: u64, parts: u32, full: u64) -> u64 {
    let of_parts = u128::from(credit) * u128::from(parts) * BILLIONTHS;
    narrowed(of_parts / u128::from(full.max(1)))
}

fn adjustment(credit: u64, full: u64, (before, after): (Parts, Parts), tokens: u64) -> Adjustment {
    let [before, after] = [before, after].map(|share| u128::from(share.number()));
    // The same tokens fill less of a larger bucket.
    let stays = u128::from(credit) * before / after;
    let given = u128::from(tokens) * u128::from(full) / (after * BILLIONTHS);
    let level = stays + given;
    // One operation instead of two: each is a system call.
    match level.checked_sub(credit.into()) {
        Some(more) => Adjustment::Give(narrowed(more)),
        None => Adjustment::Charge(narrowed(u128::from(credit) - level)),
    }
}

fn narrowed(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(percent: u32) -> Parts {
        Parts::new(percent * 100_000).unwrap()
    }

    #[test]
    fn tokens_go_with_a_share_and_come_from_nowhere() {
        const FULL: u64 = 1_000_000;
        // Half of a full bucket goes with half of its share.
        assert_eq!(tokens_of(FULL, part(20).number(), FULL), 200_000_000);
        assert_eq!(tokens_of(FULL / 2, part(20).number(), FULL), 100_000_000);
        // The tokens stay, so five times the share is a fifth as full.
        let grows = |credit, tokens| adjustment(credit, FULL, (part(10), part(50)), tokens);
        assert_eq!(grows(FULL, 0), Adjustment::Charge(FULL * 4 / 5));
        // A lease of 40 % with all its tokens: it stays full.
        assert_eq!(grows(FULL, 400_000_000), Adjustment::Give(0));
        assert_eq!(grows(0, 400_000_000), Adjustment::Give(FULL * 4 / 5));
        assert_eq!(grows(FULL, 200_000_000), Adjustment::Charge(FULL * 2 / 5));
    }
}
