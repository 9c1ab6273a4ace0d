//! A limit and a prefix that it drops or bans.

use limiter_common::ban::BanKey;

/// A limit and a prefix that it drops or bans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The limit's interned id.
    pub limit: u16,
    /// An address, or a range.
    pub prefix: BanKey,
}
