//! The standing of a prefix, by a policy's lists and the records of sources.

use limiter_common::{
    address::Family,
    ban::BanKey,
    policy::{Class, classify},
    standing::{Kind, Record, SourceId, Standing, StandingContext},
};
use limiter_policy::policy::CompiledPolicy;

/// The standing of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixStanding {
    /// The standing; a prefix with several sources is unknown.
    pub standing: Standing,
    /// Whether the source is proven, even if fresh: by a handshake, by a list, or by trust on this node or another
    /// node of the fleet. A source that became familiar just before a shortage is fresh too, but not proven.
    pub is_proven: bool,
}

impl PrefixStanding {
    const fn new(standing: Standing, is_proven: bool) -> Self {
        Self {
            standing,
            is_proven,
        }
    }
}

/// The standing of a prefix. `record` returns the record of its source.
pub fn standing_of(
    policy: &CompiledPolicy,
    prefix: &BanKey,
    at: &StandingContext<'_>,
    record: impl FnOnce(SourceId) -> Record,
) -> PrefixStanding {
    let address = prefix.address();
    let source_length = match address.family {
        Family::V4 => 32,
        Family::V6 => at.settings.ipv6_prefix,
    };
    if u32::from(prefix.prefix_length()) < source_length {
        return PrefixStanding::new(Standing::Unknown, false);
    }
    if classify(policy, &address).is_some_and(Class::is_proven) {
        return PrefixStanding::new(Standing::Proven, true);
    }
    let record = record(SourceId::new(at.settings, &address)).current(at);
    let is_proven = matches!(record.kind(), Kind::Proven | Kind::Trusted | Kind::Reported);
    PrefixStanding::new(record.standing(at), is_proven)
}

#[cfg(test)]
mod tests {
    use limiter_common::standing::{Shortage, Tick};
    use limiter_policy::config;

    use super::*;

    const LISTED: &str = "\
limits: {all: {id: total, cost: packets, burst: 900, count: 9, period: 1s, reserve: {unknown: 50%}}}
standing: {proven: ours}
lists: [{name: ours, cidr: [192.0.2.53]}]
";

    /// A standing gained just before a shortage is fresh, whether by visits or by a handshake.
    #[test]
    fn a_fresh_source_is_proven_if_it_completed_a_handshake() {
        let config = config::parse(LISTED, "test").unwrap();
        let policy = CompiledPolicy::new(&config.policy, 1).unwrap();
        let now = Tick(1_000);
        let at = StandingContext {
            settings: &policy.features.standing,
            shortage: Shortage::NONE.after_refusal(now),
            now,
        };
        let found = |address: &str, length, record| {
            let address: std::net::IpAddr = address.parse().unwrap();
            let prefix = BanKey::new(&address.into(), length);
            let found = standing_of(&policy, &prefix, &at, |_| record);
            (found.standing, found.is_proven)
        };
        let before = Tick(now.0 - 1);
        let record = |kind| Record::new(kind, false, 3, before, before);
        let one = |kind| found("198.51.100.1", 32, record(kind));
        assert_eq!(one(Kind::Familiar), (Standing::Fresh, false));
        assert_eq!(one(Kind::Proven), (Standing::Fresh, true));
        assert_eq!(one(Kind::Visited), (Standing::Unknown, false));
        let trusted = Record::new(Kind::Trusted, false, 0, before, Tick(now.0 + 9));
        assert_eq!(found("198.51.100.1", 32, trusted), (Standing::Proven, true));
        let listed = found("192.0.2.53", 32, Record::NONE);
        assert_eq!(listed, (Standing::Proven, true));
        let range = found("198.51.100.0", 24, record(Kind::Proven));
        assert_eq!(range, (Standing::Unknown, false));
    }
}
