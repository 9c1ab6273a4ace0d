//! Counts the packets of a record that a limit would drop, by the decision core's own rule.

use limiter_common::{limit::Cost, strategy::gcra::Gcra};
use serde::Serialize;

use super::{keys::Keys, record::Entry};

/// The time of the first packet by the buckets' clock, in nanoseconds. Later packets may have earlier times.
const FIRST_NS: u64 = 1 << 56;

/// An entry is spent in steps of at most 1/64 of its packets, and at most 1/16 of a burst.
const STEPS: u64 = 64;
const OF_BURST: u64 = 16;

/// The drops of one limit alone, with buckets that are full at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Drops {
    /// The packets that it counts.
    pub packets: u64,
    /// The packets that it would drop.
    pub dropped: u64,
    /// The keys of the packets.
    pub keys: u64,
    /// The keys that would lose a packet.
    pub hit: u64,
}

impl Drops {
    /// Returns the fraction of dropped packets, from 0 to 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        if self.packets == 0 {
            return 0.0;
        }
        ratio(self.dropped, self.packets)
    }

    pub(super) fn of<'a>(
        entries: impl Iterator<Item = &'a Entry>,
        keys: &Keys,
        cost: Cost,
        gcra: &Gcra,
    ) -> Self {
        #[derive(Clone, Copy, Default)]
        struct Bucket {
            tat: u64,
            is_used: bool,
            is_hit: bool,
        }
        let mut buckets = vec![Bucket::default(); keys.count()];
        let mut drops = Self::default();
        for entry in entries {
            let bucket = keys.of_entry(entry);
            let Some(bucket) = bucket.and_then(|key| buckets.get_mut(key)) else {
                continue;
            };
            let (packets, each) = entry.sent.amount(cost);
            let mut left = u64::from(packets);
            drops.packets += left;
            bucket.is_used |= left > 0;
            let now = gcra.ticks(FIRST_NS.saturating_add_signed(entry.at_ns));
            let of_burst = gcra.burst / each.max(1) / OF_BURST;
            let step = (left / STEPS).min(of_burst).max(1);
            while left > 0 {
                let packets = step.min(left);
                let after = gcra.spend(now, packets * each);
                let Some(tat) = after.ok().and_then(|spend| spend.apply(bucket.tat).ok()) else {
                    // No further packet of the entry passes: all have the same time.
                    bucket.is_hit = true;
                    drops.dropped += left;
                    break;
                };
                bucket.tat = tat;
                left -= packets;
            }
        }
        for bucket in buckets {
            drops.keys += u64::from(bucket.is_used);
            drops.hit += u64::from(bucket.is_hit);
        }
        drops
    }
}

#[expect(clippy::cast_precision_loss, reason = "a fraction for people")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
