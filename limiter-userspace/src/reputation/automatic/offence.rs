//! Who is to be banned, and why.

use limiter_common::{ban::BanKey, limit::LimitId};

use super::Subject;
use crate::{policy::AutomaticBan, text};

/// Somebody who has been dropped so often that the limit bans them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offence {
    /// For which limit, and whom.
    pub subject: Subject,
    /// How many drops there were, at least.
    pub drops: u64,
    /// How many addresses of the /64, or /64s of the /48, offend or are banned; of an address 1.
    pub members: u64,
}

impl Offence {
    /// The limit that bans them.
    #[must_use]
    pub const fn limit(&self) -> LimitId {
        LimitId(self.subject.limit)
    }

    /// Who is banned.
    #[must_use]
    pub const fn prefix(&self) -> BanKey {
        self.subject.prefix
    }

    /// Why, for people.
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
