//! A ban to make, and its result.

use ipnet::IpNet;
use limiter_common::{
    ban::{Ban, FOREVER},
    limit::LimitId,
};
use limiter_datapath::kernel::DatapathError;
use limiter_policy::policy::bans::{MOST_ORIGINS, Origin};
use thiserror::Error;

use limiter_protocol::bans::BanReason;

/// Why a prefix was not banned; no ban has changed.
#[derive(Debug, Error)]
pub(crate) enum BanError {
    /// The prefix length is 0.
    #[error("a prefix of length 0 would ban everybody")]
    Everybody,
    /// The table is full of bans that hold.
    #[error(
        "there is no room for more than {capacity} bans: raise `bans: {{capacity: …}}`, or lift some"
    )]
    Full {
        /// The most bans.
        capacity: u32,
    },
    /// Automatic bans that hold fill their share of the table.
    #[error(
        "there is no room for more than {most} automatic bans, because the rest is reserved for bans \
         by hand: raise `bans: {{capacity: …}}`"
    )]
    FullOfAutomatic {
        /// The most automatic bans.
        most: u32,
    },
    /// The prefix has a ban for each origin that it has room for.
    #[error("{MOST_ORIGINS} origins ban it already, and there is room for no more: lift one's ban")]
    TooManyOrigins,
    /// An operator or a program claims the origin of limits.
    #[error("only limits ban as `automatic`: give another --origin")]
    OnlyLimits,
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

#[derive(Clone, Debug)]
pub(crate) enum BanOrigin {
    Limit(LimitId),
    /// An operator or a program.
    ByHand(Origin),
}

/// A ban to make.
#[derive(Clone, Debug)]
pub(crate) struct NewBan {
    pub(crate) prefix: IpNet,
    /// The duration in nanoseconds; `None`: until it is lifted.
    pub(crate) for_ns: Option<u64>,
    pub(crate) reason: BanReason,
    pub(crate) origin: BanOrigin,
}

impl NewBan {
    /// Returns the ban, beginning at `now_ns`, as the first of its origin.
    pub(super) fn first(&self, now_ns: u64) -> Result<Ban, BanError> {
        let reason = self.reason.as_str();
        let (limit, text) = match &self.origin {
            BanOrigin::Limit(LimitId(limit)) => (*limit, Origin::AUTOMATIC.text(reason)),
            BanOrigin::ByHand(origin) if *origin == Origin::AUTOMATIC => {
                return Err(BanError::OnlyLimits);
            }
            BanOrigin::ByHand(origin) => (Ban::BY_HAND, origin.text(reason)),
        };
        Ok(Ban {
            until_ns: self
                .for_ns
                .map_or(FOREVER, |for_ns| now_ns.saturating_add(for_ns)),
            since_ns: now_ns,
            times: 1,
            limit,
            text,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BanEffects {
    /// The ban as stored in the table.
    pub(crate) ban: Ban,
    /// The ban of the same origin and prefix that this ban replaces.
    pub(crate) replaced: Option<Ban>,
    /// Another origin's ban of the prefix, which ends later.
    pub(crate) outlasted_by: Option<Ban>,
    /// An automatic ban of another prefix, lifted to make room.
    pub(crate) evicted: Option<(IpNet, Ban)>,
}
