//! Shortages for tests and the benchmark: in the daemon only packets cause them. The filter's answers for tests: in the
//! daemon only programs ask it.

use limiter_common::{
    policy::Features,
    standing::{Shortage, SourceId, Tick},
};

use super::{SHORTAGE, StandingMaps};
use crate::kernel::{DatapathError, map::error};

impl StandingMaps {
    /// Begins a shortage that was last renewed at the tick `renewed`, which may be ahead by
    /// [`Tick::AHEAD`].
    pub fn begin_shortage(&mut self, began: Tick, renewed: Tick) -> Result<(), DatapathError> {
        let began = Shortage::NONE.after_refusal(began);
        let word = began.0 >> 32 << 32 | u64::from(renewed.0);
        self.shortage.set(0, word, 0).map_err(error(SHORTAGE))
    }

    /// Whether the filter answers that a source may have a standing.
    #[must_use]
    pub fn may_have_standing(&self, features: &Features, source: SourceId) -> bool {
        let hash = features.hash_key.word_hash(source.0);
        self.filter.has(hash, features.standing.lines)
    }
}
