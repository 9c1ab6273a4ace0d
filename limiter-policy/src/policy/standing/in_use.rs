//! Whether a policy uses standing, and by which rules.

use super::StandingSettings;
use crate::policy::{Limit, Policy};

impl Policy {
    /// Returns whether any limit needs to know the standing of sources.
    #[must_use]
    pub fn uses_standing(&self) -> bool {
        self.limits.iter().any(Limit::uses_standing)
    }

    /// Returns the rules for standing; `None`: no limit uses it.
    #[must_use]
    pub fn standing_in_use(&self) -> Option<StandingSettings> {
        let settings = || self.standing.clone().unwrap_or_default();
        self.uses_standing().then(settings)
    }
}
