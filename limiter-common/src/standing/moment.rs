//! What the worth of records depends on.

use super::{Settings, Shortage, Tick};

/// All that a record's worth depends on, besides the record.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The latest shortage.
    pub shortage: Shortage,
    /// The time.
    pub now: Tick,
}

impl Moment<'_> {
    /// Returns whether there is a shortage.
    #[must_use]
    #[inline(always)]
    pub const fn is_short(&self) -> bool {
        self.shortage.holds(self.now)
    }
}
