//! The kinds of origins by which bans are counted.

use limiter_common::{ban::Ban, limit::LimitId};
use limiter_policy::policy::bans::Origin;

/// The kind of a ban's origin. Counts are per kind, not per origin, because clients may make up any number of origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OriginKind {
    /// An operator, who gave no name.
    Operator,
    /// CrowdSec.
    CrowdSec,
    /// Another name, such as that of one of fail2ban's jails.
    Other,
    /// The limit with this interned id.
    Limit(u16),
}

impl OriginKind {
    /// All kinds but limits.
    pub(crate) const BY_HAND: [Self; 3] = [Self::Operator, Self::CrowdSec, Self::Other];

    /// The names of all kinds.
    pub(crate) const NAMES: [&str; 4] = ["operator", "crowdsec", "other", "automatic"];

    pub(super) fn of(ban: &Ban) -> Self {
        if ban.is_automatic() {
            return Self::Limit(ban.limit);
        }
        let origin = Origin::of(ban);
        let mut origin_kinds = Self::BY_HAND.into_iter();
        let named = origin_kinds.find(|origin_kind| origin_kind.name() == origin.as_str());
        named.unwrap_or(Self::Other)
    }

    /// Returns the limit of this interned id.
    pub(crate) const fn limit(id: LimitId) -> Self {
        Self::Limit(id.0)
    }

    /// The name of its origin; `other` stands for several.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::CrowdSec => "crowdsec",
            Self::Other => "other",
            Self::Limit(_) => "automatic",
        }
    }

    pub(super) const fn is_limit(self) -> bool {
        matches!(self, Self::Limit(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_anybody_can_think_of_are_counted_together() {
        let ban = |origin: &str, limit| Ban {
            until_ns: 1,
            since_ns: 0,
            times: 1,
            limit,
            text: origin.parse::<Origin>().unwrap().text(""),
        };
        for (origin, limit, expected) in [
            ("operator", Ban::BY_HAND, OriginKind::Operator),
            ("crowdsec", Ban::BY_HAND, OriginKind::CrowdSec),
            ("sshd", Ban::BY_HAND, OriginKind::Other),
            ("other", Ban::BY_HAND, OriginKind::Other),
            ("automatic", 7, OriginKind::Limit(7)),
        ] {
            assert_eq!(OriginKind::of(&ban(origin, limit)), expected, "{origin}");
        }
    }
}
