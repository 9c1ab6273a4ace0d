//! Automatic bans in the log: a line for each, as far as their budget lasts.

use limiter_common::strategy::gcra::Gcra;
use limiter_policy::text::{count, period};
use tracing::{info, warn};

/// How many lines at once, and then how many in each minute.
const LINES_PER_MINUTE: u64 = 60;

const BUDGET: Gcra = Gcra::new(LINES_PER_MINUTE, LINES_PER_MINUTE, 60_000_000_000)
    .expect("a limit that a configuration could have");

/// Something to be told.
#[derive(Debug)]
pub(super) struct Event {
    /// The limit's name.
    pub(super) limit: String,
    /// Whom it is about, a single address without its prefix length.
    pub(super) prefix: String,
    pub(super) drops: u64,
    /// The drops, as the ban's reason tells them.
    pub(super) reason: String,
    pub(super) what: What,
}

/// What has happened.
#[derive(Debug)]
pub(super) enum What {
    /// Somebody is banned.
    Bans {
        /// For how many nanoseconds.
        for_ns: u64,
        /// How often they were until then.
        times: u16,
    },
    /// Somebody would be.
    WouldBan {
        /// For how many nanoseconds.
        for_ns: u64,
    },
    /// Somebody is not, and why.
    Refuses {
        /// The guard's word.
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
            what,
        } = self;
        match what {
            What::Bans { for_ns, times } => {
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
            What::WouldBan { for_ns } => {
                let lasts = period(*for_ns);
                info!(
                    limit,
                    prefix, drops, for_ns, "{limit} would ban {prefix} for {lasts}: {reason}"
                );
            }
            What::Refuses { why } => warn!(
                limit,
                prefix, drops, why, "{limit} does not ban {prefix} for {reason}: {why}"
            ),
        }
    }
}

/// The budget's state.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// When it is full again, in nanoseconds of the clock: its TAT.
    full_again_ns: u64,
}

impl Lines {
    /// Logs events, and how many there was no room for.
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
            let is_refused = |event: &&Event| matches!(event.what, What::Refuses { .. });
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
