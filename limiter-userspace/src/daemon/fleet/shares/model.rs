//! A host without a kernel: a bucket by the core's arithmetic, and a clock that tests move.

use std::cell::Cell;

use limiter_common::{
    limit::LimitId,
    strategy::gcra::{Gcra, Parts, ShareWord},
};
use limiter_datapath::kernel::DatapathError;

use super::lever::{Host, Lever};

/// A host with the bucket of one limit.
pub(super) struct Model {
    whole: Gcra,
    floor: Parts,
    pub(super) now_ns: Cell<u64>,
    word: Cell<ShareWord>,
    tat: Cell<u64>,
    wanted: Cell<u64>,
    waits: Cell<u64>,
}

impl Model {
    /// Makes a full one at its floor.
    pub(super) fn new(whole: Gcra, floor: Parts) -> Self {
        Self {
            whole,
            floor,
            now_ns: Cell::new(1_000_000_000),
            word: Cell::default(),
            tat: Cell::new(0),
            wanted: Cell::new(0),
            waits: Cell::new(0),
        }
    }

    pub(super) const fn lever(&self) -> ModelBucket<'_> {
        ModelBucket(self)
    }

    /// Returns how often somebody has waited.
    pub(super) fn waits(&self) -> u64 {
        self.waits.get()
    }

    /// Has a packet come; returns whether it passes.
    pub(super) fn admit(&self) -> bool {
        self.wanted.set(self.wanted.get() + 1);
        let mut spend = self.whole.spend(self.now(), 1).unwrap();
        spend.increment = self.share().cost(spend.increment);
        let after = spend.apply(self.tat.get());
        self.tat.set(after.unwrap_or(self.tat.get()));
        after.is_ok()
    }

    /// Returns what the bucket holds, in thousandths of a token.
    pub(super) fn millitokens(&self) -> u64 {
        self.whole.tokens(self.credit() * 1_000, self.share())
    }

    fn now(&self) -> u64 {
        self.whole.ticks(self.now_ns.get())
    }

    fn share(&self) -> Parts {
        let share = self.word.get().or(self.floor, self.now_ns.get());
        share.or_larger(self.floor)
    }

    fn credit(&self) -> u64 {
        let debt = self.tat.get().saturating_sub(self.now());
        self.whole.burst_offset.saturating_sub(debt)
    }
}

/// The host's bucket.
pub(super) struct ModelBucket<'m>(&'m Model);

impl Lever for ModelBucket<'_> {
    fn whole(&self) -> u64 {
        self.0.whole.emission_interval
    }

    fn share(&self) -> Result<Parts, DatapathError> {
        Ok(self.0.share())
    }

    fn set(&self, share: Parts, until_ns: u64) -> Result<(), DatapathError> {
        self.0.word.set(ShareWord::new(share, until_ns));
        Ok(())
    }

    fn wait(&self) -> Result<(), DatapathError> {
        self.0.waits.set(self.0.waits.get() + 1);
        Ok(())
    }

    fn credit(&self) -> Result<u64, DatapathError> {
        Ok(self.0.credit())
    }

    fn charge(&self, ticks: u64) -> Result<(), DatapathError> {
        let from = self.0.tat.get().max(self.0.now());
        self.0.tat.set(from + ticks);
        Ok(())
    }

    fn give(&self, ticks: u64) -> Result<(), DatapathError> {
        let now = self.0.now();
        let from = self.0.tat.get().max(now);
        self.0.tat.set(from.saturating_sub(ticks).max(now));
        Ok(())
    }
}

impl Host for Model {
    type Lever<'h> = ModelBucket<'h>;

    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn lever(&self, _limit: LimitId) -> Option<ModelBucket<'_>> {
        Some(self.lever())
    }

    fn wanted(&self, _limit: LimitId) -> Result<u64, DatapathError> {
        Ok(self.wanted.get())
    }
}
