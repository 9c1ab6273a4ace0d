//! Whether a policy uses standing, and how sources get it there.

use super::StandingSettings;
use crate::policy::{Limit, Policy};

impl Policy {
    /// Returns whether any limit needs to know the standing of sources.
    #[must_use]
    pub fn uses_standing(&self) -> bool {
        self.limits.iter().any(Limit::uses_standing)
    }

    /// Returns how sources get their standing; `None`: no limit uses it.
    #[must_use]
    pub fn standing_in_use(&self) -> Option<StandingSettings> {
        let settings = || self.standing.clone().unwrap_or_default();
        self.uses_standing().then(settings)
    }
}
