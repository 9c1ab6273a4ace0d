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

use limiter_common::standing::{Event, Kind, Record, Tick};
use limiter_datapath::kernel::{Datapath, DatapathError, KnownSources};
use limiter_fleet::{
    replicated::Replicated,
    sources::{Proof, Source, SourceKey},
};

use super::{super::updates::Now, convert};
use crate::daemon::{
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
    /// When the last one began; `None`: the next one finds the proofs of all times.
    last: Option<Tick>,
    /// When the next one may begin.
    next: Instant,
    /// The scope of the next one.
    scope: Scope,
}

/// The entries that a sweep compares; each scope has the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// New proofs.
    New,
    /// All entries.
    All,
    /// All entries, of which it writes all records anew, since the policy gives them another meaning.
    Rewrite,
}

struct Sweep {
    place: Place,
    scope: Scope,
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
    End,
}

impl Default for Sweeps {
    fn default() -> Self {
        Self {
            sweep: None,
            last: None,
            next: Instant::now(),
            scope: Scope::All,
        }
    }
}

impl Sweeps {
    pub(super) const fn is_under_way(&self) -> bool {
        self.sweep.is_some()
    }

    /// Returns whether the next sweep may begin. One of all entries does not wait for its pause.
    pub(super) fn is_due(&self) -> bool {
        self.sweep.is_none() && (self.scope > Scope::New || Instant::now() >= self.next)
    }

    /// Gives the next sweep at least this scope.
    pub(super) fn extend(&mut self, scope: Scope) {
        self.scope = self.scope.max(scope);
    }

    /// Begins a sweep that is due, if it compares all entries or `may_find` proofs.
    pub(super) fn begin(&mut self, map: &Replicated<Proof>, may_find: bool) {
        if !may_find && self.scope == Scope::New {
            return;
        }
        let begun = Tick::of_ns(Now::new().monotonic_ns);
        let scope = mem::replace(&mut self.scope, Scope::New);
        self.sweep = Some(Sweep {
            place: Place::Table(0),
            scope,
            // An empty store may have lost its data: the nodes fill it again.
            removes: scope > Scope::New && (self.last.is_some() || !map.is_empty()),
            since: (self.last).map_or(u32::MAX, |last| begun.since(last) + BEHIND),
            begun,
            restorable: MOST_LOST,
            took: Duration::ZERO,
        });
    }

    /// Ends the sweep under way.
    pub(super) fn stop(&mut self) {
        let took = self.sweep.take().map_or(Duration::ZERO, |sweep| sweep.took);
        self.next = Instant::now() + pause_after(took, SHARE, LEAST);
    }

    /// Compares the next page of the sweep under way; returns the sources to enforce, and whether there was room for
    /// all proofs.
    pub(super) fn compare(
        &mut self,
        known: &KnownSources<'_>,
        map: &mut Replicated<Proof>,
    ) -> Result<(Vec<Source>, bool), DatapathError> {
        let Some(sweep) = &mut self.sweep else {
            return Ok((Vec::new(), true));
        };
        let begun = cpu_time();
        let compared = sweep.compare(known, map)?;
        sweep.took += cpu_time().saturating_sub(begun);
        if matches!(sweep.place, Place::End) {
            self.last = Some(sweep.begun);
            self.stop();
        }
        Ok(compared)
    }
}

impl Sweep {
    /// Does [`Sweeps::compare`].
    fn compare(
        &mut self,
        known: &KnownSources<'_>,
        map: &mut Replicated<Proof>,
    ) -> Result<(Vec<Source>, bool), DatapathError> {
        let at = known.standing_context()?;
        let now = Now::new();
        let (mut due, mut has_room) = (Vec::new(), true);
        let since = at.now.since(self.begun).saturating_add(self.since);
        let next = match mem::replace(&mut self.place, Place::End) {
            Place::Table(line) => {
                let remember_s = at.settings.remember_ns / 1_000_000_000;
                let margin_s = (remember_s / LONGER).max(LEAST_LONGER_S);
                let lines = line..line.saturating_add(LINES);
                for (id, record) in known.in_lines(lines.clone()) {
                    let source = convert::source(id);
                    match record.kind() {
                        // A handshake or an operator's trust sets the last time in the record.
                        Kind::Proven | Kind::Trusted
                            if at.now.since_kept(record.last()) <= since =>
                        {
                            if let Some(proof) = convert::proof(record, &at, now.ms / 1_000) {
                                has_room &= map.prove(source, proof, margin_s, now.ms);
                            }
                        }
                        Kind::Reported if self.removes && map.proof(source, now.ms).is_none() => {
                            due.push(source);
                        }
                        _ => {}
                    }
                }
                if lines.end < known.lines() {
                    Place::Table(lines.end)
                } else if self.scope > Scope::New {
                    Place::Map(SourceKey::first_of(Source::V4([0; 4])))
                } else {
                    Place::End
                }
            }
            Place::Map(first) => {
                let (sources, next) = map.page(first, ENTRIES);
                for source in sources {
                    let record = known.record(convert::id(source, known.settings()));
                    map.renew(source, convert::is_own(record, &at), now.ms);
                    let is_lost = record == Record::NONE
                        && self.restorable > 0
                        && map.proof(source, now.ms).is_some();
                    self.restorable -= usize::from(is_lost);
                    if is_lost || self.scope == Scope::Rewrite || map.ends_soon(source, now.ms) {
                        due.push(source);
                    }
                }
                next.map_or(Place::End, Place::Map)
            }
            Place::End => Place::End,
        };
        self.place = next;
        Ok((due, has_room))
    }
}

/// Writes the winning proof of each of some sources to the table.
pub(super) fn enforce(
    datapath: &SharedDatapath,
    map: &Replicated<Proof>,
    sources: &[Source],
) -> Result<(), DatapathError> {
    for some in sources.chunks(SOME) {
        match enforce_some(&datapath.read(), map, some) {
            Ok(()) | Err(DatapathError::NoStanding) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn enforce_some(
    datapath: &Datapath,
    map: &Replicated<Proof>,
    sources: &[Source],
) -> Result<(), DatapathError> {
    let known = datapath.known_sources()?;
    let at = known.standing_context()?;
    let now_ms = Now::new().ms;
    for source in sources {
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
    Ok(())
}
