//! A host without a kernel: a bucket by the core's arithmetic, and a clock that tests move.

use std::cell::Cell;

use limiter_common::{
    limit::LimitId,
    strategy::gcra::{CurrentRate, Gcra},
};
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::Share;
use limiter_policy::policy::in_common::interval_of_share;

use super::lever::{Host, Lever};

/// A host with the bucket of one limit.
pub(super) struct Model {
    whole: u64,
    floor: Gcra,
    pub(super) now_ns: Cell<u64>,
    word: Cell<CurrentRate>,
    tat: Cell<u64>,
    wanted: Cell<u64>,
    waits: Cell<u64>,
}

impl Model {
    /// Makes a full one at its floor.
    pub(super) fn new(whole: u64, floor: Share, burst: u64) -> Self {
        let gcra = Gcra::new(burst, 1, whole).unwrap();
        Self {
            whole,
            floor: gcra.at_interval(interval_of_share(whole, floor)),
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
        let gcra = self.floor.at_interval(self.interval());
        let mut tat = self.tat.get();
        let passes = gcra.take(self.now_ns.get(), &mut tat);
        self.tat.set(tat);
        passes
    }

    /// Returns what the bucket holds, in thousandths of a token.
    pub(super) fn millitokens(&self) -> u64 {
        self.credit() * 1_000 / self.interval()
    }

    fn interval(&self) -> u64 {
        let of_floor = self.floor.emission_interval;
        (self.word.get()).interval(self.now_ns.get(), self.whole, of_floor)
    }

    fn credit(&self) -> u64 {
        let debt = self.tat.get().saturating_sub(self.now_ns.get());
        self.floor.burst_offset.saturating_sub(debt)
    }
}

/// The host's bucket.
pub(super) struct ModelBucket<'m>(&'m Model);

impl Lever for ModelBucket<'_> {
    fn interval(&self) -> Result<u64, DatapathError> {
        Ok(self.0.interval())
    }

    fn set(&self, interval_ns: u64, until_ns: u64) -> Result<(), DatapathError> {
        self.0.word.set(CurrentRate::new(interval_ns, until_ns));
        Ok(())
    }

    fn wait(&self) -> Result<(), DatapathError> {
        self.0.waits.set(self.0.waits.get() + 1);
        Ok(())
    }

    fn credit(&self) -> Result<u64, DatapathError> {
        Ok(self.0.credit())
    }

    fn charge(&self, ns: u64) -> Result<(), DatapathError> {
        let from = self.0.tat.get().max(self.0.now_ns.get());
        self.0.tat.set(from + ns);
        Ok(())
    }

    fn give(&self, ns: u64) -> Result<(), DatapathError> {
        let now_ns = self.0.now_ns.get();
        let from = self.0.tat.get().max(now_ns);
        self.0.tat.set(from.saturating_sub(ns).max(now_ns));
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
