//! Logs automatic bans, a line for each, as far as their allowance lasts.

use limiter_common::strategy::gcra::Gcra;
use limiter_policy::text::{count, period};
use tracing::{info, warn};

/// How many lines at once, and then how many in each minute.
const LINES_PER_MINUTE: u64 = 60;

const BUDGET: Gcra = Gcra::new(LINES_PER_MINUTE, LINES_PER_MINUTE, 60_000_000_000)
    .expect("a limit that a configuration could have");

/// Something to log.
#[derive(Debug)]
pub(super) struct Event {
    /// The limit's name.
    pub(super) limit: String,
    /// The prefix it is about; a single address is without its prefix length.
    pub(super) prefix: String,
    pub(super) drops: u64,
    /// The drops, in the words of the ban's reason.
    pub(super) reason: String,
    pub(super) kind: EventKind,
}

/// The kind of event.
#[derive(Debug)]
pub(super) enum EventKind {
    /// A source is banned.
    Bans {
        /// For how many nanoseconds.
        for_ns: u64,
        /// How often the prefix was banned, this time included.
        times: u16,
    },
    /// A source would be banned.
    WouldBan {
        /// For how many nanoseconds.
        for_ns: u64,
    },
    /// A source is not banned.
    Refuses {
        /// Why not.
        why: String,
    },
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

/// The allowance's state.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// When it is full again, in nanoseconds of the clock: its TAT.
    full_again_ns: u64,
}

impl Lines {
    /// Logs events, and how many the allowance had no room for.
    pub(super) fn log(&mut self, now_ns: u64, events: &[Event]) {
        let room = events
            .iter()
            .take_while(|_| BUDGET.take(now_ns, &mut self.full_again_ns))
            .count();
        let (told, untold) = events.split_at(room);
        for event in told {
            event.log();
        }
        if !untold.is_empty() {
            let more = untold.len();
            let is_refused = |event: &&Event| matches!(event.kind, EventKind::Refuses { .. });
            let refused = untold.iter().filter(is_refused).count();
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
