//! A ban to be made, and what became of it.

use ipnet::IpNet;
use limiter_common::{
    ban::{Ban, FOREVER},
    limit::LimitId,
};
use limiter_datapath::kernel::DatapathError;
use limiter_policy::policy::bans::{MOST_ORIGINS, Origin};
use thiserror::Error;

use crate::protocol::bans::BanReason;

/// A prefix was not banned; nothing has changed.
#[derive(Debug, Error)]
pub(in crate::daemon) enum BanError {
    /// The prefix length is 0.
    #[error("a prefix of length 0 would ban everybody")]
    Everybody,
    /// As many bans hold as there may be.
    #[error(
        "there is no room for more than {capacity} bans: raise `bans: {{capacity: …}}`, or lift some"
    )]
    Full {
        /// How many there may be.
        capacity: u32,
    },
    /// As many of limits' bans hold as there may be.
    #[error(
        "there is no room for more than {most} automatic bans, because the rest is reserved for bans \
         by hand: raise `bans: {{capacity: …}}`"
    )]
    FullOfAutomatic {
        /// How many bans limits may make.
        most: u32,
    },
    /// As many origins ban the prefix as there may be.
    #[error("{MOST_ORIGINS} origins ban it already, and there is room for no more: lift one's ban")]
    TooManyOrigins,
    /// Somebody else says to be a limit.
    #[error("only limits ban as `automatic`: give another --origin")]
    OnlyLimits,
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Who bans.
#[derive(Clone, Debug)]
pub(in crate::daemon) enum By {
    /// A limit.
    Limit(LimitId),
    /// An operator or a program.
    Origin(Origin),
}

/// A ban to be made.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct NewBan {
    /// The prefix to ban.
    pub(in crate::daemon) prefix: IpNet,
    /// How long, in nanoseconds; `None`: until it is lifted.
    pub(in crate::daemon) for_ns: Option<u64>,
    /// Why.
    pub(in crate::daemon) reason: BanReason,
    /// Who bans.
    pub(in crate::daemon) by: By,
}

impl NewBan {
    /// Returns the ban that begins at `now_ns`, as the first one of its origin.
    pub(super) fn first(&self, now_ns: u64) -> Result<Ban, BanError> {
        let reason = self.reason.as_str();
        let (limit, text) = match &self.by {
            By::Limit(LimitId(limit)) => (*limit, Origin::AUTOMATIC.text(reason)),
            By::Origin(origin) if *origin == Origin::AUTOMATIC => return Err(BanError::OnlyLimits),
            By::Origin(origin) => (Ban::BY_HAND, origin.text(reason)),
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

/// A ban that was made.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Banned {
    /// The ban as it is in the table.
    pub(in crate::daemon) ban: Ban,
    /// The origin's ban of the prefix that held until then.
    pub(in crate::daemon) replaced: Option<Ban>,
    /// Another origin's ban of the prefix, which ends later.
    pub(in crate::daemon) outlasted_by: Option<Ban>,
    /// A limit's ban of another prefix, lifted to make room.
    pub(in crate::daemon) evicted: Option<(IpNet, Ban)>,
}
