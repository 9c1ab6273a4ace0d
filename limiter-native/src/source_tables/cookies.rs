//! DNS cookies in memory.

use std::cell::Cell;

use limiter_common::cookie::{CookieCheck, CookieKeys};

/// The keys that check cookies, and the number of queries by the result of the check.
#[derive(Clone, Debug)]
pub struct MemoryCookies {
    /// The secrets and the wall clock.
    pub keys: CookieKeys,
    checks: [Cell<u64>; CookieCheck::COUNT],
}

impl Default for MemoryCookies {
    fn default() -> Self {
        Self {
            keys: CookieKeys::NONE,
            checks: Default::default(),
        }
    }
}

impl MemoryCookies {
    /// The number of queries with that result.
    #[must_use]
    pub fn count(&self, check: CookieCheck) -> u64 {
        self.checks[check as usize].get()
    }

    pub(super) fn add(&self, check: CookieCheck) {
        let count = &self.checks[check as usize];
        count.set(count.get() + 1);
    }
}
