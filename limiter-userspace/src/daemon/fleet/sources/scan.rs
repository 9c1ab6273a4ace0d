//! Scans the kernel's table for entries to send.

use std::time::{Duration, Instant};

use limiter_common::standing::{Kind, Settings, Tick};
use limiter_datapath::kernel::{DatapathError, KnownSources};
use limiter_fleet::sources::OwnEntries;

use super::{super::updates::Now, convert};
use crate::daemon::{
    pace::{cpu_time, pause_after},
    shared::Daemon,
};

/// The shortest pause between two scans.
const LEAST: Duration = Duration::from_millis(500);

/// Scans may take one part in so many of a CPU's time.
const SHARE: u32 = 100;

/// An entry is sent again if it lasts longer by one part in so many of the time that a source is remembered.
const LONGER: u64 = 8;

/// The least of that extension, in seconds.
const LEAST_LONGER_S: u64 = 10;

/// How many ticks the clock of another CPU may be behind.
const BEHIND: u32 = 2;

/// The schedule of scans.
pub(super) struct Scanner {
    /// The time of the last scan; `None`: the next one covers everything.
    last: Option<Tick>,
    /// When the next one is due.
    next: Instant,
}

/// The result of a scan.
pub(super) struct Seen {
    /// The settings of standing.
    pub(super) settings: Settings,
    /// Whether some entries had no room.
    pub(super) is_full: bool,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            last: None,
            next: Instant::now(),
        }
    }

    pub(super) fn are_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Schedules the next scan. `begun`: the thread's CPU time when the last one began.
    pub(super) fn pause(&mut self, begun: Duration) {
        let took = cpu_time().saturating_sub(begun);
        self.next = Instant::now() + pause_after(took, SHARE, LEAST);
    }

    /// Adds entries about sources that are new since the last scan; `None`: the policy does not use standing.
    /// If `all`, takes back ended entries too.
    pub(super) fn scan(
        &mut self,
        daemon: &Daemon,
        own_entries: &mut OwnEntries,
        all: bool,
    ) -> Result<Option<Seen>, DatapathError> {
        let datapath = daemon.datapath();
        let known = match datapath.known_sources() {
            Ok(known) => known,
            Err(DatapathError::NoStanding) => {
                self.last = None;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let is_full = self.add_new(&known, own_entries)?;
        if all {
            keep(&known, own_entries)?;
        }
        Ok(Some(Seen {
            settings: *known.settings(),
            is_full,
        }))
    }

    /// Adds missing entries about sources that are new since the last scan; returns whether some had no room.
    fn add_new(
        &mut self,
        known: &KnownSources<'_>,
        own_entries: &mut OwnEntries,
    ) -> Result<bool, DatapathError> {
        let at = known.moment()?;
        let now = Now::new();
        let now_s = now.ms / 1_000;
        let remember_s = at.settings.remember_ns / 1_000_000_000;
        let margin_s = (remember_s / LONGER).max(LEAST_LONGER_S);
        let last = self.last.replace(at.now);
        let since = last.map_or(u32::MAX, |last| at.now.since(last) + BEHIND);
        let mut is_full = false;
        for (id, record) in known.all() {
            // A handshake or an operator's trust sets the last time in the record.
            let is_new = matches!(record.kind(), Kind::Proven | Kind::Trusted)
                && at.now.since_kept(record.last()) <= since;
            if is_new && let Some(entry) = convert::entry(id, record, &at, now_s) {
                is_full |= !own_entries.set(entry, margin_s, now.ms);
            }
        }
        Ok(is_full)
    }
}

/// Takes back ended entries.
fn keep(known: &KnownSources<'_>, own_entries: &mut OwnEntries) -> Result<(), DatapathError> {
    let at = known.moment()?;
    let now_ms = Now::new().ms;
    own_entries.keep(now_ms, |entry| {
        let id = convert::id(entry.source, known.settings());
        entry.holds(now_ms / 1_000) && convert::is_own(known.record(id), &at)
    });
    Ok(())
}
