//! A bucket in integers, so that no rounding hides an excess.

use limiter_fleet::{Bucket, InForce, Share};

/// A limit's burst in thousandths of a token, and its rate in thousandths of a token a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) burst: u64,
    pub(crate) rate: u64,
}

/// A token, in the units of a level.
pub(crate) const TOKEN: u128 = 1_000 * MILLITOKEN;
const MILLITOKEN: u128 = 1_000_000_000;

/// A node's bucket, which fills by the node's clock. Like the BPF programs, it knows when the share ends,
/// even without a daemon.
#[derive(Clone, Debug)]
pub(crate) struct NodeBucket {
    budget: Budget,
    share: Share,
    /// When the share ends, by the node's clock, and the part that stays.
    until: Option<u64>,
    own: Share,
    level: u128,
    at: u64,
}

impl NodeBucket {
    /// Makes a full bucket.
    pub(crate) fn new(budget: Budget, floor: Share, now: u64) -> Self {
        Self {
            budget,
            share: floor,
            until: None,
            own: floor,
            level: u128::from(floor.of(budget.burst)) * MILLITOKEN,
            at: now,
        }
    }

    pub(crate) fn ends(&mut self, in_force: InForce) {
        self.until = in_force.until;
        self.own = in_force.own;
    }

    pub(crate) fn share(&mut self, now: u64) -> Share {
        self.fill(now);
        self.share
    }

    /// Changes to the home share, keeping the fill level in proportion, as the programs do with a bucket
    /// that the daemon has not set.
    pub(crate) fn becomes_home(&mut self, now: u64, home: Share) {
        self.fill(now);
        if home > self.share {
            let [before, after] = [self.share, home].map(|share| u128::from(share.in_billionths()));
            self.level = self.level * after / before;
        }
        self.become_share(home);
        self.until = None;
        self.own = home;
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
        if let Some(until) = self.until.filter(|until| *until <= now) {
            self.fill_to(until);
            self.until = None;
            self.become_share(self.own);
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

impl Bucket for NodeBucket {
    fn change(&mut self, now_ns: u64, to: Share, gained_millitokens: u64) -> u64 {
        self.fill(now_ns);
        let taken = self.become_share(to);
        self.level += u128::from(gained_millitokens) * MILLITOKEN;
        self.clip();
        u64::try_from(taken / MILLITOKEN).expect("a bucket of 64 bits")
    }
}

/// The single bucket that an owner would have without a fleet, in true time. It fills faster by the
/// millionths that nodes' clocks may gain.
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

    /// Takes a token; returns whether there was one.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let passed = u128::from(now - self.at) * (MILLION + u128::from(self.faster_ppm));
        self.at = now;
        let full = u128::from(self.budget.burst) * MILLITOKEN * MILLION;
        self.level = (self.level + u128::from(self.budget.rate) * passed).min(full);
        match self.level.checked_sub(TOKEN * MILLION) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }
}
