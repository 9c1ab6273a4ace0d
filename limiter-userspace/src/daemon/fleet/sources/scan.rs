//! Scans the kernel's table for proofs to send.

use std::time::{Duration, Instant};

use limiter_common::standing::{Kind, Tick};
use limiter_datapath::kernel::{DatapathError, KnownSources};
use limiter_fleet::{replicated::Replicated, sources::Proof};

use super::{super::updates::Now, convert};
use crate::daemon::pace::{cpu_time, pause_after};

/// The shortest pause between two scans.
const LEAST: Duration = Duration::from_millis(500);

/// Scans may take one part in so many of a CPU's time.
const SHARE: u32 = 100;

/// A proof is sent again if it lasts longer by one part in so many of the time that a source is remembered.
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

    /// Adds proofs of sources that are new since the last scan; returns whether all had room. If `all`, takes
    /// back ended proofs, too.
    pub(super) fn scan(
        &mut self,
        known: &KnownSources<'_>,
        map: &mut Replicated<Proof>,
        all: bool,
    ) -> Result<bool, DatapathError> {
        let at = known.standing_context()?;
        let now = Now::new();
        let now_s = now.ms / 1_000;
        let remember_s = at.settings.remember_ns / 1_000_000_000;
        let margin_s = (remember_s / LONGER).max(LEAST_LONGER_S);
        let last = self.last.replace(at.now);
        let since = last.map_or(u32::MAX, |last| at.now.since(last) + BEHIND);
        let mut has_room = true;
        for (id, record) in known.all() {
            // A handshake or an operator's trust sets the last time in the record.
            let is_new = matches!(record.kind(), Kind::Proven | Kind::Trusted)
                && at.now.since_kept(record.last()) <= since;
            if is_new && let Some(proof) = convert::proof(record, &at, now_s) {
                has_room &= map.prove(convert::source(id), proof, margin_s, now.ms);
            }
        }
        if all {
            let at = known.standing_context()?;
            map.keep(now.ms, |source, _| {
                let id = convert::id(source, known.settings());
                convert::is_own(known.record(id), &at)
            });
        }
        Ok(has_room)
    }
}
