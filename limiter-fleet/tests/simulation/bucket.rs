//! A bucket in integers, so that no rounding hides an excess.

use limiter_fleet::Share;

/// A limit's burst in thousandths of a token, and its rate in thousandths of a token a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) burst: u64,
    pub(crate) rate: u64,
}

impl Budget {
    /// The time in which an empty bucket fills, in milliseconds, rounded up.
    pub(crate) const fn fill_ms(self) -> u64 {
        (self.burst * 1_000).div_ceil(self.rate)
    }
}

/// A token, in the units of a level.
pub(crate) const TOKEN: u128 = 1_000 * MILLITOKEN;
const MILLITOKEN: u128 = 1_000_000_000;
const BILLION: u128 = 1_000_000_000;

/// A node's bucket, which fills by the node's clock. Like the BPF programs, it knows when the share ends, even without
/// a daemon.
#[derive(Clone, Debug)]
pub(crate) struct NodeBucket {
    budget: Budget,
    share: Share,
    minimum: Share,
    /// When the share becomes the minimum, by the node's clock.
    until: u64,
    level: u128,
    at: u64,
}

impl NodeBucket {
    /// Makes a full bucket of the minimum share.
    pub(crate) fn new(budget: Budget, minimum: Share, now: u64) -> Self {
        Self {
            budget,
            share: minimum,
            minimum,
            until: u64::MAX,
            level: u128::from(minimum.of(budget.burst)) * MILLITOKEN,
            at: now,
        }
    }

    pub(crate) fn share(&mut self, now: u64) -> Share {
        self.fill(now);
        self.share
    }

    /// Changes the share, with new tokens in billionths of the burst; returns the tokens that a smaller share loses, in
    /// the same unit.
    pub(crate) fn change(&mut self, now: u64, to: Share, tokens: u64, until: u64) -> u64 {
        self.fill(now);
        self.until = until;
        let burst = u128::from(self.budget.burst) * MILLITOKEN;
        let taken = self.become_share(to);
        self.level += u128::from(tokens) * burst / BILLION;
        self.clip();
        u64::try_from(taken * BILLION / burst).expect("a part of the burst")
    }

    pub(crate) fn admit(&mut self, now: u64) -> bool {
        self.fill(now);
        match self.level.checked_sub(TOKEN) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }

    fn fill(&mut self, now: u64) {
        if self.until <= now {
            self.fill_to(self.until);
            self.until = u64::MAX;
            self.become_share(self.minimum);
        }
        self.fill_to(now);
    }

    fn fill_to(&mut self, now: u64) {
        let passed = u128::from(now.saturating_sub(self.at));
        self.at = self.at.max(now);
        self.level += u128::from(self.share.of(self.budget.rate)) * passed;
        self.clip();
    }

    fn clip(&mut self) {
        let full = u128::from(self.share.of(self.budget.burst)) * MILLITOKEN;
        self.level = self.level.min(full);
    }

    fn become_share(&mut self, share: Share) -> u128 {
        let [before, after] = [self.share, share].map(|share| u128::from(share.in_billionths()));
        let taken = self.level * before.saturating_sub(after) / before.max(1);
        self.level -= taken;
        self.share = share;
        self.clip();
        taken
    }
}

/// The single bucket that a key would have without a fleet, in true time. It fills faster by the millionths that nodes'
/// clocks may gain.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    budget: Budget,
    faster_ppm: u64,
    /// In units, times a million.
    level: u128,
    at: u64,
}

const MILLION: u128 = 1_000_000;

impl Whole {
    pub(crate) fn new(budget: Budget, faster_ppm: u64) -> Self {
        Self {
            budget,
            faster_ppm,
            level: u128::from(budget.burst) * MILLITOKEN * MILLION,
            at: 0,
        }
    }

    /// Allows the tokens of so much time, as the store's clock was set forward.
    pub(crate) fn gain(&mut self, ns: u64) {
        self.level += u128::from(self.budget.rate) * u128::from(ns) * MILLION;
    }

    /// Takes a token; returns whether there was one.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let passed = u128::from(now - self.at) * (MILLION + u128::from(self.faster_ppm));
        self.at = now;
        let full = u128::from(self.budget.burst) * MILLITOKEN * MILLION;
        let filled = self.level + u128::from(self.budget.rate) * passed;
        // A gain may lie above a full bucket until it is used.
        self.level = filled.min(full.max(self.level));
        match self.level.checked_sub(TOKEN * MILLION) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }
}
