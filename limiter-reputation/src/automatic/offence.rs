//! An offence: the prefix to ban, and the reason.

use limiter_common::{
    ban::{Ban, BanKey},
    limit::LimitId,
};
use limiter_policy::{
    policy::{AutomaticBan, bans::Origin},
    text,
};

use super::subject::Subject;

/// A source that was dropped so often that the limit bans it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offence {
    /// The limit, and the prefix that it bans.
    pub subject: Subject,
    /// The number of drops, at least.
    pub drops: u64,
    /// The number of addresses of the /64, or /64s of the /48, that offend or are banned; 1 for an address.
    pub members: u64,
}

impl Offence {
    /// The limit that bans.
    #[must_use]
    pub const fn limit(&self) -> LimitId {
        LimitId(self.subject.limit)
    }

    /// The prefix that it bans.
    #[must_use]
    pub const fn prefix(&self) -> BanKey {
        self.subject.prefix
    }

    /// Returns the ban that begins at `now_ns`, in nanoseconds of the decision's clock. `before`: the ban before it,
    /// if it is remembered.
    #[must_use]
    pub fn ban(&self, terms: &AutomaticBan, before: Option<&Ban>, now_ns: u64) -> Ban {
        let times = before.map_or(1, |before| before.times.saturating_add(1));
        Ban {
            until_ns: now_ns.saturating_add(terms.length_ns(times)),
            since_ns: now_ns,
            times,
            limit: self.subject.limit,
            text: Origin::AUTOMATIC.text(&self.reason(terms)),
        }
    }

    /// Returns the reason, for people.
    #[must_use]
    pub fn reason(&self, terms: &AutomaticBan) -> String {
        let drops = text::count(self.drops);
        let within = text::period(terms.within_ns);
        let of = match self.prefix().prefix_length() {
            64 => format!(" of {} addresses", self.members),
            48 => format!(" of {} /64s", self.members),
            _ => String::new(),
        };
        format!("{drops} drops{of} in {within}")
    }
}
