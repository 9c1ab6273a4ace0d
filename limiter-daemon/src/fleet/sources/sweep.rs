//! Compares the kernel's table of known sources with the map, a page at a time: neither bans nor the watchdog wait for
//! half a million sources.
//!
//! A sweep goes through the table, for this host's new proofs. One of all entries also removes other nodes' records that no
//! node proves. Then it goes through the map: takes back ended proofs of this host, repeats old ones, and restores
//! records of other nodes that the table has lost.

use std::{
    mem,
    time::{Duration, Instant},
};

use limiter_common::standing::{Event, Kind, Record, SourceId, StandingContext, Tick};
use limiter_datapath::kernel::{DatapathError, KnownSources};
use limiter_fleet::{
    replicated::Replicated,
    sources::{Proof, Source, SourceKey},
};

use super::{super::updates::Now, convert, openings::Openings};
use crate::{
    pace::{cpu_time, pause_after},
    shared_datapath::SharedDatapath,
};

/// The shortest pause between two sweeps.
const LEAST: Duration = Duration::from_millis(500);

/// Sweeps may take one part in so many of a CPU's time.
const SHARE: u32 = 100;

/// How many lines of the table, or entries of the map, a page has.
const LINES: u32 = 4_096;
const ENTRIES: usize = 4_096;

/// How many sources to change before another thread may change the policy.
const SOME: usize = 256;

/// The most sources to restore in one sweep: the table may be full.
const MOST_LOST: usize = 10_000;

/// A proof is sent again if it lasts longer by one part in so many of the time that a source is remembered.
const LONGER: u64 = 8;

/// The least of that extension, in seconds.
const LEAST_LONGER_S: u64 = 10;

/// How many ticks the clock of another CPU may be behind.
const BEHIND: u32 = 2;

/// The schedule of sweeps.
pub(super) struct Sweeps {
    sweep: Option<Sweep>,
    openings: Openings,
    /// When the last one began; `None`: the next one finds the proofs of all times.
    last: Option<Tick>,
    /// When the next one for new proofs may begin.
    next: Instant,
    /// Whether the next one compares all entries. It does not wait for its time.
    pub(super) all: bool,
}

struct Sweep {
    place: Place,
    /// Whether to compare all entries.
    all: bool,
    /// Whether to remove records of other nodes that no node proves.
    removes: bool,
    /// How old a new proof is at most, in ticks before the beginning.
    since: u32,
    begun: Tick,
    /// How many more lost records to restore.
    restorable: usize,
    /// The CPU time so far.
    took: Duration,
}

/// Where a sweep goes on.
enum Place {
    /// At this line of the table.
    Table(u32),
    /// At this key of the map.
    Map(SourceKey),
}

/// The result of comparing a page.
#[derive(Default)]
pub(super) struct Page {
    /// The sources to enforce.
    pub(super) due: Vec<Source>,
    /// Whether there was no room for a proof.
    pub(super) is_full: bool,
}

impl Default for Sweeps {
    fn default() -> Self {
        Self {
            sweep: None,
            openings: Openings::default(),
            last: None,
            next: Instant::now(),
            all: true,
        }
    }
}

impl Sweeps {
    pub(super) const fn is_under_way(&self) -> bool {
        self.sweep.is_some()
    }

    /// Begins a sweep if one is due, and compares all entries or may find new proofs.
    pub(super) fn begin(&mut self, map: &Replicated<Proof>, datapath: &SharedDatapath) {
        if self.sweep.is_some() || !self.all && Instant::now() < self.next {
            return;
        }
        if !self.openings.are_new(&datapath.read()) && !self.all {
            return;
        }
        let (begun, all) = (
            Tick::of_ns(Now::new().monotonic_ns),
            mem::take(&mut self.all),
        );
        self.sweep = Some(Sweep {
            place: Place::Table(0),
            all,
            // An empty store may have lost its data: the nodes fill it again.
            removes: all && (self.last.is_some() || !map.is_empty()),
            since: (self.last).map_or(u32::MAX, |last| begun.since(last) + BEHIND),
            begun,
            restorable: MOST_LOST,
            took: Duration::ZERO,
        });
    }

    /// Compares the next page of the sweep under way. An error ends it.
    pub(super) fn compare(
        &mut self,
        known: &KnownSources<'_>,
        map: &mut Replicated<Proof>,
    ) -> Result<Page, DatapathError> {
        let Some(mut sweep) = self.sweep.take() else {
            return Ok(Page::default());
        };
        let (before, mut page) = (cpu_time(), Page::default());
        let next = sweep.compare(known, map, &mut page)?;
        sweep.took += cpu_time().saturating_sub(before);
        if let Some(place) = next {
            self.sweep = Some(Sweep { place, ..sweep });
        } else {
            self.last = Some(sweep.begun);
            self.next = Instant::now() + pause_after(sweep.took, SHARE, LEAST);
        }
        Ok(page)
    }
}

impl Sweep {
    /// Compares a page; returns the place of the next; `None`: it was the last.
    fn compare(
        &mut self,
        known: &KnownSources<'_>,
        map: &mut Replicated<Proof>,
        page: &mut Page,
    ) -> Result<Option<Place>, DatapathError> {
        let (at, now) = (known.standing_context()?, Now::new());
        let first = match &self.place {
            Place::Map(first) => first.clone(),
            Place::Table(line) => {
                let lines = *line..line.saturating_add(LINES);
                self.compare_lines(known.in_lines(lines.clone()), (&at, now), map, page);
                return Ok(if lines.end < known.lines() {
                    Some(Place::Table(lines.end))
                } else {
                    self.all
                        .then(|| Place::Map(SourceKey::first_of(Source::V4([0; 4]))))
                });
            }
        };
        let (sources, next) = map.page(first, ENTRIES);
        for source in sources {
            let record = known.record(convert::id(source, known.settings()));
            map.renew(source, convert::is_own(record, &at), now.ms);
            if record == Record::NONE && self.restorable > 0 && map.proof(source, now.ms).is_some()
            {
                self.restorable -= 1;
                page.due.push(source);
            }
        }
        Ok(next.map(Place::Map))
    }

    fn compare_lines(
        &self,
        records: impl Iterator<Item = (SourceId, Record)>,
        (at, now): (&StandingContext<'_>, Now),
        map: &mut Replicated<Proof>,
        page: &mut Page,
    ) {
        let since = at.now.since(self.begun).saturating_add(self.since);
        let margin_s = (at.settings.remember_ns / 1_000_000_000 / LONGER).max(LEAST_LONGER_S);
        for (id, record) in records {
            let source = convert::source(id);
            match record.kind() {
                // A handshake or an operator's trust sets the last time in the record.
                Kind::Proven | Kind::Trusted if at.now.since_kept(record.last()) <= since => {
                    if let Some(proof) = convert::proof(record, at, now.ms / 1_000) {
                        page.is_full |= !map.prove(source, proof, margin_s, now.ms);
                    }
                }
                Kind::Reported if self.removes && map.proof(source, now.ms).is_none() => {
                    page.due.push(source);
                }
                _ => {}
            }
        }
    }
}

/// Writes the proofs of some sources by other nodes to the table.
pub(super) fn enforce(
    datapath: &SharedDatapath,
    map: &Replicated<Proof>,
    sources: &[Source],
) -> Result<(), DatapathError> {
    for some in sources.chunks(SOME) {
        let datapath = datapath.read();
        let known = datapath.known_sources()?;
        let (at, now_ms) = (known.standing_context()?, Now::new().ms);
        for source in some {
            let id = convert::id(*source, known.settings());
            let proof = map.proof(*source, now_ms);
            let record = proof.map_or(Record::NONE, |proof| {
                convert::record(&proof, &at, now_ms / 1_000)
            });
            let present = known.record(id);
            let is_over = proof.is_none() && present.kind() != Kind::Reported;
            if present != record && !is_over {
                known.record_event(id, Event::Reported { record })?;
            }
        }
    }
    Ok(())
}
