//! The trait of tables of the standing of sources.

use crate::{
    policy::Features,
    standing::{Event, HashedSource, SourceId, Standing},
};

/// A table of known sources and of first tries.
pub trait StandingTable {
    /// Returns the standing of a source at the time `now_ns`, in nanoseconds, and records its visit.
    fn visit(&self, features: &Features, source: &HashedSource, now_ns: u64) -> Standing;

    /// Whether there is a shortage at the time `now_ns`, in nanoseconds.
    fn is_short(&self, now_ns: u64) -> bool;

    /// Records that a limit refused a packet of a source of that standing at the time `now_ns`: there
    /// is a shortage, and an unknown source has made its first try.
    fn record_refusal(
        &self,
        features: &Features,
        source: &HashedSource,
        standing: Standing,
        now_ns: u64,
    );

    /// Records a refusal for a reserve like [`Self::record_refusal`]. Returns the standing that the source
    /// has now: an unknown source that came again in time is retried.
    fn refused(
        &self,
        features: &Features,
        source: &HashedSource,
        standing: Standing,
        now_ns: u64,
    ) -> Standing;

    /// Records an event of a source at the time `now_ns`; returns the source's standing after it.
    fn record_event(
        &self,
        features: &Features,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Standing;
}

/// Knows no source: all stay unknown.
impl StandingTable for () {
    #[inline(always)]
    fn visit(&self, _features: &Features, _source: &HashedSource, _now_ns: u64) -> Standing {
        Standing::Unknown
    }

    #[inline(always)]
    fn is_short(&self, _now_ns: u64) -> bool {
        false
    }

    #[inline(always)]
    fn record_refusal(&self, _: &Features, _: &HashedSource, _: Standing, _now_ns: u64) {}

    #[inline(always)]
    fn refused(
        &self,
        _features: &Features,
        _source: &HashedSource,
        standing: Standing,
        _now_ns: u64,
    ) -> Standing {
        standing
    }

    #[inline(always)]
    fn record_event(&self, _: &Features, _: SourceId, _: Event, _now_ns: u64) -> Standing {
        Standing::Unknown
    }
}
