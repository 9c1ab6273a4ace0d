//! Looks at the kernel's table for what this node has to say.

use std::time::{Duration, Instant};

use limiter_common::standing::{Kind, Settings, Tick};
use limiter_datapath::kernel::{DatapathError, KnownSources};
use limiter_fleet::sources::Sayings;

use super::{super::words::Now, convert};
use crate::daemon::{
    pace::{cpu_time, pause_after},
    shared::Daemon,
};

/// The shortest pause between two looks.
const LEAST: Duration = Duration::from_millis(500);

/// The part of a CPU's time that looks may take: one in so many.
const SHARE: u32 = 100;

/// The part of the time that a source is remembered by which a word must last longer to be said again: one in so many.
const LONGER: u64 = 8;

/// The least of that, in seconds.
const LEAST_LONGER_S: u64 = 10;

/// By how many ticks a clock of another CPU may be behind.
const BEHIND: u32 = 2;

/// The looks at the table.
pub(super) struct Looks {
    /// The time of the last; `None`: the next one looks at all.
    last: Option<Tick>,
    /// When the next one is due.
    next: Instant,
}

/// The outcome of a look.
pub(super) struct Seen {
    /// How sources get their standing.
    pub(super) settings: Settings,
    /// Whether there was no room to say all.
    pub(super) is_full: bool,
}

impl Looks {
    pub(super) fn new() -> Self {
        Self {
            last: None,
            next: Instant::now(),
        }
    }

    /// Returns whether a look is due.
    pub(super) fn are_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Puts the next one off after one that began at a time of this thread's CPU time.
    pub(super) fn pause(&mut self, begun: Duration) {
        let took = cpu_time().saturating_sub(begun);
        self.next = Instant::now() + pause_after(took, SHARE, LEAST);
    }

    /// Says what is new since the last look; `None`: the policy uses no standing. If `all`, takes back what holds no
    /// longer, too.
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

    /// Says of the sources that came since the last look what was not said; returns whether there was no room for
    /// some.
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
            // Whoever completes a handshake or is vouched for comes with that, as far as its record says.
            let is_new = matches!(record.kind(), Kind::Proven | Kind::Vouched)
                && at.now.since_kept(record.last()) <= since;
            if is_new && let Some(word) = convert::word(id, record, &at, now_s) {
                is_full |= !sayings.say(word, margin_s, now.ms);
            }
        }
        Ok(is_full)
    }
}

/// Takes back what holds no longer.
fn keep(known: &KnownSources<'_>, sayings: &mut Sayings) -> Result<(), DatapathError> {
    let at = known.moment()?;
    let now_ms = Now::new().ms;
    sayings.keep(now_ms, |word| {
        let id = convert::id(word.source, known.settings());
        word.holds(now_ms / 1_000) && convert::is_own(known.record(id), &at)
    });
    Ok(())
}
