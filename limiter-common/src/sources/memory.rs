//! The common steps of all tables of known sources, over each table's own memory.

use super::StandingTable;
use crate::{
    policy::Features,
    standing::{
        Event, FilterPlace, FilterWord, FirstTries, HashedSource, Record, Shortage, ShortageWord,
        SourceId, Standing, StandingContext, Tick, filter::HALVES, first_tries, known, shortage,
    },
    table::{InsertOutcome, Line},
};

/// The memory of a table of known sources, shared by all CPUs.
///
/// A table may make the steps separate functions, as [`DecisionSteps`](crate::decide::DecisionSteps) does
/// with the steps of a decision. They are not in that trait because handshakes and userspace's commands,
/// which decide on no packet, change records by the same steps.
pub trait StandingMemory {
    /// The word of the shortage.
    fn shortage_word(&self) -> Option<impl ShortageWord>;

    /// The line of the table of known sources at an index.
    fn known_line(&self, index: u32) -> Option<impl Line>;

    /// The line of first tries at an index.
    fn first_try_line(&self, index: u32) -> Option<impl FirstTries>;

    /// The word at an index of the [filter](crate::standing::filter) of sources with a standing.
    fn filter_word(&self, index: u32) -> Option<impl FilterWord>;

    /// Calls [`change()`].
    #[inline(always)]
    fn change(
        &self,
        features: &Features,
        index: u32,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Standing
    where
        Self: Sized,
    {
        change(self, features, index, source, event, now_ns)
    }

    /// Calls [`is_retry()`].
    #[inline(always)]
    fn is_retry(
        &self,
        features: &Features,
        source: &HashedSource,
        standing: Standing,
        now_ns: u64,
    ) -> bool
    where
        Self: Sized,
    {
        is_retry(self, features, source, standing, now_ns)
    }

    /// Calls [`after()`].
    #[inline(always)]
    fn after(&self, features: &Features, record: Record, event: Event, now_ns: u64) -> Record
    where
        Self: Sized,
    {
        after(self, features, record, event, now_ns)
    }

    /// Calls [`weight()`].
    #[inline(always)]
    fn weight(&self, features: &Features, record: Record, now_ns: u64) -> u64
    where
        Self: Sized,
    {
        weight(self, features, record, now_ns)
    }

    /// Calls [`add_to_filter()`].
    #[inline(always)]
    fn add_to_filter(&self, features: &Features, source: SourceId)
    where
        Self: Sized,
    {
        add_to_filter(self, features, source);
    }

    /// Calls [`insert()`].
    #[inline(always)]
    fn insert(
        &self,
        features: &Features,
        index: u32,
        source: SourceId,
        record: Record,
        now_ns: u64,
    ) -> InsertOutcome
    where
        Self: Sized,
    {
        insert(self, features, index, source, record, now_ns)
    }
}

/// Returns the index of a source's line in the table of known sources.
#[must_use]
#[inline(always)]
pub const fn known_index(features: &Features, source: SourceId) -> u32 {
    index_of(
        features.hash_key.word_hash(source.0),
        features.standing.lines,
    )
}

#[inline(always)]
const fn index_of(hash: u64, lines: u32) -> u32 {
    (hash & 0xffff_ffff) as u32 & lines.wrapping_sub(1)
}

/// Returns everything that a record's worth depends on at a time in nanoseconds.
#[inline(always)]
fn standing_context<'a, M: StandingMemory>(
    memory: &M,
    features: &'a Features,
    now_ns: u64,
) -> StandingContext<'a> {
    StandingContext {
        settings: &features.standing,
        shortage: shortage_of(memory),
        now: Tick::of_ns(now_ns),
    }
}

#[inline(always)]
fn shortage_of<M: StandingMemory>(memory: &M) -> Shortage {
    match memory.shortage_word() {
        Some(word) => Shortage(word.get()),
        None => Shortage::NONE,
    }
}

impl<M: StandingMemory> StandingTable for M {
    #[inline(always)]
    fn visit(&self, features: &Features, source: &HashedSource, now_ns: u64) -> Standing {
        let HashedSource { id, hash } = *source;
        if id == SourceId::NONE {
            return Standing::Unknown;
        }
        let at = standing_context(self, features, now_ns);
        if at.shortage.holds(at.now) {
            // A source of a flood is refused: fetch this line before it is needed.
            if let Some(line) = first_try_line(self, features, hash) {
                line.fetch();
            }
            // Now a visit changes only records that give a standing.
            if !may_have_standing(self, features, hash) {
                return Standing::Unknown;
            }
        }
        let index = index_of(hash, features.standing.lines);
        let record = match self.known_line(index) {
            Some(line) => known::find(&line, id),
            None => return Standing::Unknown,
        };
        // Mostly the visit was recorded in this tick already.
        if record.after(Event::Visit, &at) == record {
            record.standing(&at)
        } else {
            self.change(features, index, id, Event::Visit, now_ns)
        }
    }

    #[inline(always)]
    fn is_short(&self, now_ns: u64) -> bool {
        shortage_of(self).holds(Tick::of_ns(now_ns))
    }

    #[inline(always)]
    fn record_refusal(
        &self,
        features: &Features,
        source: &HashedSource,
        standing: Standing,
        now_ns: u64,
    ) {
        self.is_retry(features, source, standing, now_ns);
    }

    #[inline(always)]
    fn refused(
        &self,
        features: &Features,
        source: &HashedSource,
        standing: Standing,
        now_ns: u64,
    ) -> Standing {
        if self.is_retry(features, source, standing, now_ns) {
            happened(self, features, source.id, Event::Retry, now_ns)
        } else {
            standing
        }
    }

    #[inline(always)]
    fn record_event(
        &self,
        features: &Features,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Standing {
        happened(self, features, source, event, now_ns)
    }
}

/// Records the shortage in which a source of that standing was refused; returns whether the source was
/// unknown and this is its retry.
#[inline(always)]
pub fn is_retry<M: StandingMemory>(
    memory: &M,
    features: &Features,
    source: &HashedSource,
    standing: Standing,
    now_ns: u64,
) -> bool {
    if let Some(word) = memory.shortage_word() {
        shortage::renew(&word, Tick::of_ns(now_ns));
    }
    if !matches!(standing, Standing::Unknown) || source.id == SourceId::NONE {
        return false;
    }
    match first_try_line(memory, features, source.hash) {
        Some(line) => first_tries::is_retry(&line, source.hash, &features.standing, now_ns),
        None => false,
    }
}

/// Returns the line of first tries for a source's hash.
#[inline(always)]
fn first_try_line<M: StandingMemory>(
    memory: &M,
    features: &Features,
    hash: u64,
) -> Option<impl FirstTries> {
    memory.first_try_line(first_tries::line_of(
        hash,
        features.standing.first_try_lines,
    ))
}

/// Records an event of a source at the time `now_ns`, in nanoseconds; returns the source's standing
/// after it.
#[inline(always)]
pub fn happened<M: StandingMemory>(
    memory: &M,
    features: &Features,
    source: SourceId,
    event: Event,
    now_ns: u64,
) -> Standing {
    if source == SourceId::NONE {
        return Standing::Unknown;
    }
    let index = known_index(features, source);
    memory.change(features, index, source, event, now_ns)
}

/// Changes the record of a source in its line at `index` by an event. Returns its standing then, even if
/// the line has no room for it.
#[inline(always)]
pub fn change<M: StandingMemory>(
    memory: &M,
    features: &Features,
    index: u32,
    source: SourceId,
    event: Event,
    now_ns: u64,
) -> Standing {
    let record = match memory.known_line(index) {
        Some(line) => known::change(
            &line,
            source,
            |record| {
                let after = memory.after(features, record, event, now_ns);
                // Before the record is stored, as the filter asks.
                if after != record && after.is_in_filter() {
                    memory.add_to_filter(features, source);
                }
                after
            },
            |record| memory.insert(features, index, source, record, now_ns),
        ),
        None => Record::NONE,
    };
    record.standing(&standing_context(memory, features, now_ns))
}

/// Returns whether the source with this hash may have a standing; false: it has none.
#[inline(always)]
fn may_have_standing<M: StandingMemory>(memory: &M, features: &Features, hash: u64) -> bool {
    let Some(header) = memory.filter_word(0) else {
        return true;
    };
    let place = FilterPlace::new(hash, features.standing.lines);
    let half = (header.get() & 1) as u32;
    match memory.filter_word(place.index(half)) {
        Some(word) => word.get() & place.bits == place.bits,
        None => true,
    }
}

/// Adds a source that is about to get a standing to both halves of the filter.
#[inline(always)]
pub fn add_to_filter<M: StandingMemory>(memory: &M, features: &Features, source: SourceId) {
    let hash = features.hash_key.word_hash(source.0);
    let place = FilterPlace::new(hash, features.standing.lines);
    for half in 0..HALVES {
        if let Some(word) = memory.filter_word(place.index(half))
            && word.get() & place.bits != place.bits
        {
            word.set(place.bits);
        }
    }
}

/// Returns a record after an event.
#[inline(always)]
pub fn after<M: StandingMemory>(
    memory: &M,
    features: &Features,
    record: Record,
    event: Event,
    now_ns: u64,
) -> Record {
    record.after(event, &standing_context(memory, features, now_ns))
}

/// Inserts a source that is not in its line.
#[inline(always)]
pub fn insert<M: StandingMemory>(
    memory: &M,
    features: &Features,
    index: u32,
    source: SourceId,
    record: Record,
    now_ns: u64,
) -> InsertOutcome {
    match memory.known_line(index) {
        Some(line) => known::insert(&line, source, record, |record| {
            memory.weight(features, record, now_ns)
        }),
        None => InsertOutcome::Unavailable,
    }
}

/// Returns the worth of keeping a record: a line makes room by evicting the record of least weight.
#[inline(always)]
pub fn weight<M: StandingMemory>(
    memory: &M,
    features: &Features,
    record: Record,
    now_ns: u64,
) -> u64 {
    known::weight(record, &standing_context(memory, features, now_ns))
}
