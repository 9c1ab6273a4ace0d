//! The trait of stores of the standing of sources.

use crate::{
    policy::Shape,
    standing::{Event, SourceId, Standing},
};

/// A store of known sources and of first tries.
pub trait StandingStore {
    /// Returns the standing of a source at the time `now_ns`, in nanoseconds, and notes its visit.
    fn visit(&self, shape: &Shape, source: SourceId, now_ns: u64) -> Standing;

    /// Whether there is a shortage at the time `now_ns`, in nanoseconds.
    fn is_short(&self, now_ns: u64) -> bool;

    /// Notes that a limit refused a packet of a source of that standing at the time `now_ns`: there
    /// is a shortage, and an unknown source has made its first try.
    fn note_refused(&self, shape: &Shape, source: SourceId, standing: Standing, now_ns: u64);

    /// Notes a refusal for a reserve like [`Self::note_refused`]. Returns the standing that the source has
    /// now: an unknown source that came again in time is retried.
    fn refused(&self, shape: &Shape, source: SourceId, standing: Standing, now_ns: u64)
    -> Standing;

    /// Notes an event of a source at the time `now_ns`; returns the source's standing after it.
    fn note(&self, shape: &Shape, source: SourceId, event: Event, now_ns: u64) -> Standing;
}

/// Knows no source: all stay unknown.
impl StandingStore for () {
    #[inline(always)]
    fn visit(&self, _shape: &Shape, _source: SourceId, _now_ns: u64) -> Standing {
        Standing::Unknown
    }

    #[inline(always)]
    fn is_short(&self, _now_ns: u64) -> bool {
        false
    }

    #[inline(always)]
    fn note_refused(&self, _: &Shape, _: SourceId, _: Standing, _now_ns: u64) {}

    #[inline(always)]
    fn refused(
        &self,
        _shape: &Shape,
        _source: SourceId,
        standing: Standing,
        _now_ns: u64,
    ) -> Standing {
        standing
    }

    #[inline(always)]
    fn note(&self, _: &Shape, _: SourceId, _: Event, _now_ns: u64) -> Standing {
        Standing::Unknown
    }
}
