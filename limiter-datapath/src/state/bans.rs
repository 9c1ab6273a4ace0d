//! Bans in a form that outlives the kernel's clock.

use ipnet::IpNet;
use jiff::Timestamp;
use limiter_common::{
    address::Address,
    ban::{Ban, BanKey, BanText, FOREVER, Hits},
};
use serde::{Deserialize, Serialize};

/// A ban, possibly an ended one that is still remembered. Its times are wall-clock times in
/// nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedBan {
    prefix: IpNet,
    /// `None`: until it is lifted.
    until_ns: Option<u64>,
    since_ns: u64,
    times: u16,
    limit: u16,
    reason: Box<[u8]>,
    /// The origin's name; empty for limits and the operator.
    origin: Box<[u8]>,
}

/// A ban in version 4 of the state file, when only limits and the operator made bans.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedBan4 {
    prefix: IpNet,
    until_ns: Option<u64>,
    since_ns: u64,
    times: u16,
    limit: u16,
    reason: Box<[u8]>,
}

impl From<SavedBan4> for SavedBan {
    fn from(saved: SavedBan4) -> Self {
        let SavedBan4 {
            prefix,
            until_ns,
            since_ns,
            times,
            limit,
            reason,
        } = saved;
        Self {
            prefix,
            until_ns,
            since_ns,
            times,
            limit,
            reason,
            origin: Box::default(),
        }
    }
}

/// The packets and bytes dropped by the bans of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedHits {
    prefix: IpNet,
    packets: u64,
    bytes: u64,
}

impl SavedHits {
    /// Takes the hits of a prefix.
    #[must_use]
    pub const fn new(prefix: IpNet, hits: Hits) -> Self {
        let Hits { packets, bytes } = hits;
        Self {
            prefix,
            packets,
            bytes,
        }
    }

    /// The hits, with the key of the prefix's ban at the front.
    #[must_use]
    pub fn restore(&self) -> (BanKey, Hits) {
        let Self {
            prefix,
            packets,
            bytes,
        } = *self;
        (key(prefix), Hits { packets, bytes })
    }
}

/// The key of a prefix's ban at the front.
fn key(prefix: IpNet) -> BanKey {
    BanKey::new(&Address::from(prefix.addr()), prefix.prefix_len())
}

/// One point in time by both clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    monotonic_ns: u64,
    wall_ns: u64,
}

impl ClockReading {
    /// Takes the kernel's clock and the wall clock. Wall-clock times before 1970 count as 1970.
    #[must_use]
    pub fn new(monotonic_ns: u64, wall: Timestamp) -> Self {
        Self {
            monotonic_ns,
            wall_ns: u64::try_from(wall.as_nanosecond()).unwrap_or_default(),
        }
    }

    /// The nanoseconds since an earlier reading, by the kernel's clock.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.monotonic_ns.saturating_sub(earlier.monotonic_ns)
    }

    /// The difference between the clocks about the time since an earlier reading, in nanoseconds: the
    /// wall clock was set, or the machine slept.
    #[must_use]
    pub fn disagreement(self, earlier: Self) -> u64 {
        let passed = |now: u64, before: u64| i128::from(now) - i128::from(before);
        let by_kernel = passed(self.monotonic_ns, earlier.monotonic_ns);
        let by_wall = passed(self.wall_ns, earlier.wall_ns);
        u64::try_from(by_kernel.abs_diff(by_wall)).unwrap_or(u64::MAX)
    }
}

impl SavedBan {
    /// Converts a ban of the kernel's table at the time `now`.
    #[must_use]
    pub fn new(prefix: IpNet, ban: &Ban, now: ClockReading) -> Self {
        let until_ns = ban.until_ns.checked_sub(now.monotonic_ns).map_or_else(
            || now.wall_ns.saturating_sub(now.monotonic_ns - ban.until_ns),
            |left| now.wall_ns.saturating_add(left),
        );
        let age = now.monotonic_ns.wrapping_sub(ban.since_ns);
        Self {
            prefix,
            until_ns: (ban.until_ns != FOREVER).then_some(until_ns),
            since_ns: now.wall_ns.saturating_sub(age),
            times: ban.times,
            limit: ban.limit,
            reason: ban.text.reason().into(),
            origin: ban.text.origin().into(),
        }
    }

    /// Converts to a ban of the kernel's table at the time `now`. The ban is at the front of its
    /// prefix; bans of other origins may claim the same position. A ban that ended before the kernel's
    /// clock started ends at that start, with the same duration. A ban that begins later than now,
    /// because the wall clock was set back, begins now, with the same duration.
    #[must_use]
    pub fn restore(&self, now: ClockReading) -> (BanKey, Ban) {
        let now = ClockReading {
            wall_ns: now.wall_ns.max(self.since_ns),
            ..now
        };
        let monotonic = |wall_ns: u64| {
            wall_ns.checked_sub(now.wall_ns).map_or_else(
                || now.monotonic_ns.saturating_sub(now.wall_ns - wall_ns),
                |left| now.monotonic_ns.saturating_add(left),
            )
        };
        let since_ns = match self.until_ns {
            Some(until) => monotonic(until).wrapping_sub(until.saturating_sub(self.since_ns)),
            None => now
                .monotonic_ns
                .wrapping_sub(now.wall_ns.saturating_sub(self.since_ns)),
        };
        let reason = String::from_utf8_lossy(&self.reason);
        let origin = String::from_utf8_lossy(&self.origin);
        let ban = Ban {
            until_ns: self.until_ns.map_or(FOREVER, monotonic),
            since_ns,
            times: self.times,
            limit: self.limit,
            text: BanText::new(&reason, &origin),
        };
        (key(self.prefix), ban)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ban(since: u64, until: Option<u64>) -> Ban {
        Ban {
            until_ns: until.map_or(FOREVER, |until| until * SECOND),
            since_ns: since * SECOND,
            times: 3,
            limit: 7,
            text: BanText::new("é", "fail2ban"),
        }
    }

    fn reading(monotonic: u64, wall: i64) -> ClockReading {
        ClockReading::new(monotonic * SECOND, Timestamp::from_second(wall).unwrap())
    }

    #[test]
    fn clocks_that_disagree() {
        let earlier = reading(100, 5_000);
        for (now, since, disagreement) in [
            (reading(160, 5_060), 60, 0),
            (reading(160, 5_061), 60, 1),
            (reading(160, 1_060), 60, 4_000),
            (reading(160, 905_060), 60, 900_000),
        ] {
            assert_eq!(now.since(earlier), since * SECOND);
            assert_eq!(now.disagreement(earlier), disagreement * SECOND);
        }
    }

    /// Bans are saved 5000 s after the boot, at 1 000 000 s by the wall clock, and restored after
    /// another boot. Compares the remaining time and the whole duration of each.
    #[test]
    fn ends_are_kept_over_a_boot() {
        let prefix: IpNet = "2001:db8::/48".parse().unwrap();
        let rows = [
            // Made an hour ago for two hours; 100 s have passed, 40 of them since the boot.
            ((1_400, Some(8_600)), (40, 1_000_100), Some((3_540, 7_200))),
            // The ban has ended by then, before the boot and after it.
            ((4_990, Some(5_010)), (40, 1_000_100), Some((0, 20))),
            ((4_990, Some(5_080)), (40, 1_000_100), Some((20, 90))),
            // The same boot.
            ((4_990, Some(5_080)), (5_010, 1_000_010), Some((5_080, 90))),
            ((1_400, None), (40, 1_000_100), None),
            // The wall clock was set back, by less than the age and by more.
            ((1_400, Some(8_600)), (40, 997_000), Some((6_640, 7_200))),
            ((1_400, Some(8_600)), (40, 900_000), Some((7_240, 7_200))),
        ];
        for ((since, until), (monotonic, wall), expected) in rows {
            let made = ban(since, until);
            let saved = SavedBan::new(prefix, &made, reading(5_000, 1_000_000));
            let bytes = postcard::to_stdvec(&saved).unwrap();
            let saved: SavedBan = postcard::from_bytes(&bytes).unwrap();
            let now = reading(monotonic, wall);
            let (key, restored) = saved.restore(now);
            assert_eq!(key, BanKey::new(&Address::from(prefix.addr()), 48));
            let lasts = restored.until_ns.wrapping_sub(restored.since_ns);
            if let Some((until, in_all)) = expected {
                assert_eq!(restored.until_ns, until * SECOND, "{since} {until:?}");
                assert_eq!(lasts, in_all * SECOND, "{since} {until:?}");
            } else {
                assert_eq!(restored.until_ns, FOREVER);
                let age = (monotonic * SECOND).wrapping_sub(restored.since_ns);
                assert_eq!(age, (5_000 - since + 100) * SECOND);
            }
            let (times, limit) = (restored.times, restored.limit);
            assert_eq!((times, limit, restored.text), (3, 7, made.text));
        }
    }
}
