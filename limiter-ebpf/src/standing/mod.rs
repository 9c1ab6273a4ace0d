//! The standing of sources, in maps that all instances of the program share.

mod filter;
pub(crate) mod first_tries;
mod handshakes;
pub(crate) mod orders;
mod shortage;

use aya_ebpf::{bindings::BPF_F_MMAPABLE, btf_maps::Array, macros::btf_map};
use limiter_common::{
    address::Address,
    clock::Clock as _,
    policy::Features,
    sources::{self, StandingMemory},
    standing::{
        Event, FilterWord, FirstTries, HashedSource, Record, ShortageWord, SourceId, Standing,
    },
    table::{InsertOutcome, Line, WAYS},
};

use crate::{buckets::MapLine, clock::KernelClock, globals};

/// Lines of sources and their records. The loader sets their number. Mappable, so that userspace
/// can read them, and because the values of such an array start at a page and not within a cache
/// line.
#[btf_map]
static KNOWN: Array<[u64; 2 * WAYS], 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The maps, with functions that the verifier walks once.
pub(crate) struct MapStanding;

impl StandingMemory for MapStanding {
    #[inline(always)]
    fn shortage_word(&self) -> Option<impl ShortageWord> {
        shortage::word()
    }

    #[inline(always)]
    fn known_line(&self, index: u32) -> Option<impl Line> {
        let line = KNOWN.get_ptr_mut(index)?;
        // SAFETY: an element of the map: eight aligned words that are only changed atomically.
        Some(unsafe { MapLine::<WAYS>::new(line.cast()) })
    }

    #[inline(always)]
    fn first_try_line(&self, index: u32) -> Option<impl FirstTries> {
        first_tries::line(index)
    }

    #[inline(always)]
    fn filter_word(&self, index: u32) -> Option<impl FilterWord> {
        filter::word(index)
    }

    #[inline(always)]
    fn add_to_filter(&self, _features: &Features, source: SourceId) {
        limiter_add_to_filter(source.0);
    }

    #[inline(always)]
    fn change(
        &self,
        _features: &Features,
        index: u32,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Standing {
        let (event, value) = event.to_numbers();
        Standing::of_number(limiter_change_standing(
            index, source.0, event, value, now_ns,
        ))
    }

    #[inline(always)]
    fn is_retry(
        &self,
        _features: &Features,
        source: &HashedSource,
        standing: Standing,
        now_ns: u64,
    ) -> bool {
        limiter_is_retry(source, standing as u32, now_ns) == 1
    }

    #[inline(always)]
    fn after(&self, _features: &Features, record: Record, event: Event, now_ns: u64) -> Record {
        let (event, value) = event.to_numbers();
        Record(limiter_record_after(record.0, event, value, now_ns))
    }

    #[inline(always)]
    fn weight(&self, _features: &Features, record: Record, now_ns: u64) -> u64 {
        limiter_record_weight(record.0, now_ns)
    }

    #[inline(always)]
    fn insert(
        &self,
        _features: &Features,
        index: u32,
        source: SourceId,
        record: Record,
        now_ns: u64,
    ) -> InsertOutcome {
        InsertOutcome::of_number(limiter_insert_source(index, source.0, record.0, now_ns))
    }
}

/// Records that a source completed a handshake with this host.
#[inline(always)]
fn prove(peer: &Address) {
    let features = globals::features();
    let source = SourceId::new(&features.standing, peer);
    sources::happened(
        &MapStanding,
        features,
        source,
        Event::Handshake,
        KernelClock.now(),
    );
}

/// Calls [`sources::change`]; takes the [numbers](Event::to_numbers) of an event, returns the
/// number of a [`Standing`].
///
/// Like the functions below, it is a global function of the BPF object: the verifier walks it once,
/// for any arguments, and it does not use the stage's stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_change_standing(
    index: u32,
    source: u64,
    event: u32,
    value: u64,
    now_ns: u64,
) -> u32 {
    let features = globals::features();
    // Older verifiers walk this function even if the policy does not use standing.
    if !features.uses_standing() {
        return Standing::Unknown as u32;
    }
    let event = Event::of_numbers(event, value);
    sources::change(
        &MapStanding,
        features,
        index,
        SourceId(source),
        event,
        now_ns,
    ) as u32
}

/// Calls [`sources::after`]; takes and returns records, takes the [numbers](Event::to_numbers) of
/// an event.
///
/// Together with [`limiter_insert_source`], it makes a round of attempts to change a record a short
/// path.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_record_after(record: u64, event: u32, value: u64, now_ns: u64) -> u64 {
    let features = globals::features();
    // As above.
    if !features.uses_standing() {
        return record;
    }
    let event = Event::of_numbers(event, value);
    sources::after(&MapStanding, features, Record(record), event, now_ns).0
}

/// Calls [`sources::add_to_filter`]; returns 0, since the kernel only knows functions that return a number.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_add_to_filter(source: u64) -> u32 {
    let features = globals::features();
    // As above.
    if features.uses_standing() {
        sources::add_to_filter(&MapStanding, features, SourceId(source));
    }
    0
}

/// Calls [`sources::weight`] of a record. A function, because a line has four records, and the
/// verifier would walk their combinations.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_record_weight(record: u64, now_ns: u64) -> u64 {
    let features = globals::features();
    // As above.
    if !features.uses_standing() {
        return 0;
    }
    sources::weight(&MapStanding, features, Record(record), now_ns)
}

/// Calls [`sources::insert`]; returns the number of an [`InsertOutcome`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_insert_source(index: u32, source: u64, record: u64, now_ns: u64) -> u32 {
    let features = globals::features();
    // As above.
    if !features.uses_standing() {
        return InsertOutcome::Unavailable as u32;
    }
    let (source, record) = (SourceId(source), Record(record));
    sources::insert(&MapStanding, features, index, source, record, now_ns) as u32
}

/// Calls [`sources::is_retry`]; takes the number of a [`Standing`], returns 1 for true. The stage
/// itself handles the retry: deeper in the call chain, it would take more stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_is_retry(source: *const HashedSource, standing: u32, now_ns: u64) -> u32 {
    let features = globals::features();
    // As above.
    if !features.uses_standing() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else.
    let Some(source) = (unsafe { source.as_ref() }) else {
        return 0;
    };
    u32::from(sources::is_retry(
        &MapStanding,
        features,
        source,
        Standing::of_number(standing),
        now_ns,
    ))
}
