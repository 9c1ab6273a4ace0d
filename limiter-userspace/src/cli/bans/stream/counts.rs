//! Counts the results of a stream.

use std::fmt;

use limiter_policy::text::count;
use serde::Serialize;

use limiter_protocol::bans::BanOutcome;

/// The number of changes with each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct BanOutcomeCounts {
    /// Made bans, including replacements of earlier ones.
    pub(super) banned: u64,
    /// Lifted bans.
    pub(super) lifted: u64,
    /// Requests to lift a ban that did not exist.
    pub(super) not_banned: u64,
    /// Refused bans.
    pub(super) refused: u64,
    /// Lines or decisions that cannot be parsed.
    pub(super) bad: u64,
    /// Decisions that are not bans of addresses or ranges, have expired, or end no later than another of the
    /// same prefix.
    pub(super) skipped: u64,
}

impl BanOutcomeCounts {
    pub(super) const fn add(&mut self, outcome: &BanOutcome) {
        match outcome {
            BanOutcome::Banned { .. } => self.banned += 1,
            BanOutcome::Lifted { .. } => self.lifted += 1,
            BanOutcome::NotBanned { .. } => self.not_banned += 1,
            BanOutcome::Outlasted => self.skipped += 1,
            BanOutcome::Refused { .. } => self.refused += 1,
        }
    }
}

/// Formats as `banned 12, lifted 3, refused 0, bad 0`; other counts appear only if they are not zero.
impl fmt::Display for BanOutcomeCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "banned {}, lifted {}, refused {}, bad {}",
            count(self.banned),
            count(self.lifted),
            count(self.refused),
            count(self.bad)
        )?;
        for (label, number) in [
            ("not banned before", self.not_banned),
            ("skipped", self.skipped),
        ] {
            if number > 0 {
                write!(formatter, ", {label} {}", count(number))?;
            }
        }
        Ok(())
    }
}
