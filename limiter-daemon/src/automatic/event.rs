//! Logs automatic bans, one line each, within an allowance of lines.

use limiter_common::strategy::gcra::Gcra;
use limiter_policy::text::{count, period};
use tracing::{info, warn};

/// The most lines at once, and then in each minute.
const LINES_PER_MINUTE: u64 = 60;

const BUDGET: Gcra = Gcra::new(LINES_PER_MINUTE, LINES_PER_MINUTE, 60_000_000_000)
    .expect("a limit that a configuration could have");

/// An event to log.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) limit: String,
    /// A single address has no prefix length.
    pub(super) prefix: String,
    pub(super) drops: u64,
    /// The text of the ban's reason.
    pub(super) reason: String,
    pub(super) kind: EventKind,
}

#[derive(Debug)]
pub(super) enum EventKind {
    /// A source is banned.
    Bans {
        /// In nanoseconds.
        for_ns: u64,
        /// The number of bans of the prefix, including this one.
        times: u16,
    },
    /// `ban` only observes.
    WouldBan {
        /// In nanoseconds.
        for_ns: u64,
    },
    /// A source is not banned.
    Refuses { why: String },
}

impl Event {
    fn log(&self) {
        let Self {
            limit,
            prefix,
            drops,
            reason,
            kind,
        } = self;
        match kind {
            EventKind::Bans { for_ns, times } => {
                let lasts = period(*for_ns);
                let again = if *times > 1 {
                    format!("; time {times}")
                } else {
                    String::new()
                };
                warn!(
                    limit,
                    prefix,
                    drops,
                    for_ns,
                    times,
                    "{limit} bans {prefix} for {lasts}: {reason}{again}"
                );
            }
            EventKind::WouldBan { for_ns } => {
                let lasts = period(*for_ns);
                info!(
                    limit,
                    prefix, drops, for_ns, "{limit} would ban {prefix} for {lasts}: {reason}"
                );
            }
            EventKind::Refuses { why } => warn!(
                limit,
                prefix, drops, why, "{limit} does not ban {prefix} for {reason}: {why}"
            ),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// When the allowance is full again, in nanoseconds of the clock: its TAT.
    full_again_ns: u64,
}

impl Lines {
    /// Logs events, and the number of events beyond the allowance.
    pub(super) fn log(&mut self, now_ns: u64, events: &[Event]) {
        let room = events
            .iter()
            .take_while(|_| BUDGET.take(now_ns, &mut self.full_again_ns))
            .count();
        let (reported, unreported) = events.split_at(room);
        for event in reported {
            event.log();
        }
        if !unreported.is_empty() {
            let more = unreported.len();
            let is_refused = |event: &&Event| matches!(event.kind, EventKind::Refuses { .. });
            let refused = unreported.iter().filter(is_refused).count();
            warn!(
                more,
                refused,
                "and {} more automatic bans, {} of them refused: see `limiter bans`",
                count(more as u64),
                count(refused as u64)
            );
        }
    }
}
