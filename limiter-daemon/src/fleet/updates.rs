//! Converts bans between the kernel's table and the fleet's updates.

use std::time::Duration;

use ipnet::IpNet;
use limiter_common::{
    ban::{Ban, FOREVER},
    limit::LimitId,
};
use limiter_datapath::kernel::{monotonic_now, wall_clock_now};
use limiter_fleet::bans::{BanId, BanState};
use limiter_policy::policy::{Names, bans::Origin};
use limiter_protocol::bans::BanReason;

use crate::bans::{BanOrigin, JournalEntry, NewBan};

const NS_PER_MS: u64 = 1_000_000;

/// One moment, by the kernel's clock and by the wall clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) monotonic_ns: u64,
    /// Since 1970; 0 if earlier.
    pub(super) ms: u64,
}

impl Now {
    pub(super) fn new() -> Self {
        Self {
            monotonic_ns: monotonic_now(),
            ms: u64::try_from(wall_clock_now().as_millisecond()).unwrap_or_default(),
        }
    }

    /// Returns the end of a ban, in milliseconds since 1970; `None`: it lasts until it is lifted.
    pub(super) const fn until_ms(self, ban: &Ban) -> Option<u64> {
        if ban.until_ns == FOREVER {
            return None;
        }
        let left_ns = ban.until_ns.saturating_sub(self.monotonic_ns);
        Some(self.ms.saturating_add(left_ns / NS_PER_MS))
    }

    /// Returns when a ban was made, in milliseconds since 1970.
    pub(super) const fn since_ms(self, ban: &Ban) -> u64 {
        let age_ns = self.monotonic_ns.wrapping_sub(ban.since_ns);
        self.ms.saturating_sub(age_ns / NS_PER_MS)
    }

    /// Returns the remaining time of a ban; `None`: it lasts until it is lifted.
    fn left(self, until_ms: Option<u64>) -> Option<Duration> {
        until_ms.map(|until_ms| Duration::from_millis(until_ms.saturating_sub(self.ms)))
    }
}

/// Returns the fleet's id of a ban.
pub(super) fn id(prefix: IpNet, ban: &Ban) -> BanId {
    BanId {
        prefix: prefix.trunc(),
        origin: Origin::of(ban).as_str().into(),
    }
}

/// Returns the new state of a changed ban, and when the earlier ban would have ended.
pub(super) fn state_of(changed: &JournalEntry, names: &Names, now: Now) -> (BanId, BanState, u64) {
    let until_ms = now.until_ms(&changed.ban);
    let id = id(changed.prefix, &changed.ban);
    let state = if changed.is_lifted {
        BanState::Lifted
    } else {
        made(&changed.ban, until_ms, names)
    };
    (id, state, until_ms.unwrap_or(u64::MAX))
}

/// Returns the update about an active ban.
pub(super) fn made(ban: &Ban, until_ms: Option<u64>, names: &Names) -> BanState {
    let limit = ban.is_automatic().then(|| {
        // Only the other node knows the name of its limit: leave it empty.
        let name = names.name(LimitId(ban.limit));
        name.unwrap_or_default().into()
    });
    let reason = String::from_utf8_lossy(ban.text.reason());
    let reason = BanReason::cut(&reason).unwrap_or_default();
    BanState::Banned {
        until_ms,
        reason: reason.as_str().into(),
        limit,
    }
}

/// Returns the ban to make here; `None`: it is lifted, or its origin is invalid.
pub(super) fn new_ban(id: &BanId, state: &BanState, names: &Names, now: Now) -> Option<NewBan> {
    let BanState::Banned {
        until_ms,
        reason,
        limit,
    } = state
    else {
        return None;
    };
    let origin = match limit {
        Some(name) => BanOrigin::Limit(names.id(name).unwrap_or(LimitId(Ban::ELSEWHERE))),
        None => BanOrigin::ByHand(id.origin.parse().ok()?),
    };
    let left = now.left(*until_ms);
    Some(NewBan {
        prefix: id.prefix,
        for_ns: left.map(|left| u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)),
        reason: BanReason::cut(reason).unwrap_or_default(),
        origin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now {
        monotonic_ns: 50_000_000_000,
        ms: 1_700_000_000_000,
    };

    fn ban(until_ns: u64, limit: u16, origin: &str, reason: &str) -> Ban {
        Ban {
            until_ns,
            since_ns: 49_000_000_000,
            times: 3,
            limit,
            text: origin.parse::<Origin>().unwrap().text(reason),
        }
    }

    #[track_caller]
    fn there_and_back(ban: Ban) -> NewBan {
        let names = Names::default().intern(["Other", "Web"]).unwrap();
        let changed = JournalEntry {
            prefix: "192.0.2.0/24".parse().unwrap(),
            ban,
            is_lifted: false,
        };
        let (id, state, _) = state_of(&changed, &names, NOW);
        new_ban(&id, &state, &names, NOW).unwrap()
    }

    #[test]
    fn bans_are_the_same_elsewhere() {
        let new = there_and_back(ban(53_000_000_000, Ban::BY_HAND, "sshd", "why"));
        assert_eq!(new.prefix, "192.0.2.0/24".parse().unwrap());
        assert_eq!(new.for_ns, Some(3_000_000_000));
        assert_eq!(new.reason.as_str(), "why");
        assert!(matches!(new.origin, BanOrigin::ByHand(origin) if origin.as_str() == "sshd"));
        let new = there_and_back(ban(FOREVER, Ban::BY_HAND, "operator", ""));
        assert_eq!(new.for_ns, None);
        let names = Names::default().intern(["Other", "Web"]).unwrap();
        let LimitId(web) = names.id("Web").unwrap();
        let new = there_and_back(ban(FOREVER, web, "automatic", "9 drops"));
        assert!(matches!(new.origin, BanOrigin::Limit(LimitId(limit)) if limit == web));
        let unknown = there_and_back(ban(FOREVER, Ban::ELSEWHERE, "automatic", ""));
        assert!(matches!(
            unknown.origin,
            BanOrigin::Limit(LimitId(Ban::ELSEWHERE))
        ));
    }

    #[test]
    fn times() {
        let ended = ban(1, Ban::BY_HAND, "operator", "");
        assert_eq!(NOW.until_ms(&ended), Some(NOW.ms));
        assert_eq!(NOW.since_ms(&ended), NOW.ms - 1_000);
        let lifted = JournalEntry {
            prefix: "192.0.2.0/24".parse().unwrap(),
            ban: ban(53_000_000_000, Ban::BY_HAND, "operator", ""),
            is_lifted: true,
        };
        let (_, state, ends_ms) = state_of(&lifted, &Names::default(), NOW);
        assert_eq!((state, ends_ms), (BanState::Lifted, NOW.ms + 3_000));
    }
}
