//! Scans the kernel's table for words to send.

use std::time::{Duration, Instant};

use limiter_common::standing::{Kind, Settings, Tick};
use limiter_datapath::kernel::{DatapathError, KnownSources};
use limiter_fleet::sources::Sayings;

use super::{super::words::Now, convert};
use crate::daemon::{
    pace::{cpu_time, pause_after},
    shared::Daemon,
};

/// The shortest pause between two scans.
const LEAST: Duration = Duration::from_millis(500);

/// Scans may take one part in so many of a CPU's time.
const SHARE: u32 = 100;

/// A word is sent again if it lasts longer by one part in so many of the time that a source is remembered.
const LONGER: u64 = 8;

/// The least of that extension, in seconds.
const LEAST_LONGER_S: u64 = 10;

/// How many ticks the clock of another CPU may be behind.
const BEHIND: u32 = 2;

/// The schedule of scans.
pub(super) struct Looks {
    /// The time of the last scan; `None`: the next one covers everything.
    last: Option<Tick>,
    /// When the next one is due.
    next: Instant,
}

/// The result of a scan.
pub(super) struct Seen {
    /// The settings of standing.
    pub(super) settings: Settings,
    /// Whether some words had no room.
    pub(super) is_full: bool,
}

impl Looks {
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

    /// Adds words about sources that are new since the last scan; `None`: the policy does not use standing.
    /// If `all`, takes back ended words too.
    pub(super) fn look(
        &mut self,
        daemon: &Daemon,
        sayings: &mut Sayings,
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
        let is_full = self.say_new(&known, sayings)?;
        if all {
            keep(&known, sayings)?;
        }
        Ok(Some(Seen {
            settings: *known.settings(),
            is_full,
        }))
    }

    /// Adds missing words about sources that are new since the last scan; returns whether some had no room.
    fn say_new(
        &mut self,
        known: &KnownSources<'_>,
        sayings: &mut Sayings,
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
            if is_new && let Some(word) = convert::word(id, record, &at, now_s) {
                is_full |= !sayings.say(word, margin_s, now.ms);
            }
        }
        Ok(is_full)
    }
}

/// Takes back ended words.
fn keep(known: &KnownSources<'_>, sayings: &mut Sayings) -> Result<(), DatapathError> {
    let at = known.moment()?;
    let now_ms = Now::new().ms;
    sayings.keep(now_ms, |word| {
        let id = convert::id(word.source, known.settings());
        word.holds(now_ms / 1_000) && convert::is_own(known.record(id), &at)
    });
    Ok(())
}
