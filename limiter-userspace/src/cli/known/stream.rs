//! `limiter trust --stdin`: trusts sources as they arrive.

use std::fmt;

use ipnet::IpNet;
use limiter_policy::text::count;
use limiter_protocol::known::{KnownChange, KnownChanges, KnownOutcome};
use serde::Serialize;

use super::{
    ENDS_WITH_DAEMON,
    change::{change, undone},
    parse,
};
use crate::cli::{
    args::ReadArgs,
    stream::{self, Applier, lines},
};

/// Applies changes from stdin until it ends.
pub(super) fn stream(read: &ReadArgs, for_ns: u64, json: bool) -> anyhow::Result<()> {
    let applier = KnownApplier {
        read,
        counts: KnownCounts::default(),
        ends_with_daemon: false,
    };
    stream::apply(applier, json, move |input, sink| {
        // Ignore errors: the receiver is gone, so there is no reason to read on.
        let _ = lines::read(input, |line| parse::line(line, for_ns), sink);
    })
}

/// The number of sources or lines with each result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct KnownCounts {
    /// Sources that became proven.
    known: u64,
    /// Forgotten sources.
    forgotten: u64,
    /// Refused lines, and lines with sources that found no room.
    refused: u64,
    /// Lines that cannot be parsed.
    bad: u64,
}

/// Formats as `known 12, forgotten 3, refused 0, bad 0`.
impl fmt::Display for KnownCounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "known {}, forgotten {}, refused {}, bad {}",
            count(self.known),
            count(self.forgotten),
            count(self.refused),
            count(self.bad)
        )
    }
}

struct KnownApplier<'r> {
    read: &'r ReadArgs,
    counts: KnownCounts,
    ends_with_daemon: bool,
}

impl Applier for KnownApplier<'_> {
    type Change = KnownChange;
    type Counts = KnownCounts;

    /// Applying one source takes about a 64th of a change's fixed time.
    fn weight(change: &KnownChange) -> usize {
        1 + (most_sources(change.prefix()) >> 6)
    }

    fn apply(&mut self, changes: Vec<KnownChange>) -> anyhow::Result<Vec<(usize, String)>> {
        let wanted = KnownChanges {
            changes,
            together: false,
        };
        let response = change(self.read, &wanted)?;
        self.ends_with_daemon |= response.ends_with_daemon;
        let mut refused = Vec::new();
        for (index, (change, outcome)) in wanted.changes.iter().zip(&response.outcomes).enumerate()
        {
            match outcome {
                KnownOutcome::Trusted { sources, .. } => self.counts.known += sources,
                KnownOutcome::Untrusted { sources, .. } => self.counts.forgotten += sources,
                KnownOutcome::Refused { .. } => {}
            }
            if let Some(undone) = undone(change, outcome) {
                self.counts.refused += 1;
                refused.push((index, undone));
            }
        }
        Ok(refused)
    }

    fn count_bad(&mut self) {
        self.counts.bad += 1;
    }

    /// Every line is a change, so none is skipped.
    fn count_skipped(&mut self) {}

    fn counts(&self) -> &KnownCounts {
        &self.counts
    }

    fn is_complete(&self) -> bool {
        self.counts.refused + self.counts.bad == 0
    }

    fn notice(&self) -> Option<&'static str> {
        self.ends_with_daemon.then_some(ENDS_WITH_DAEMON)
    }
}

/// Returns the most sources in a prefix that can be trusted.
const fn most_sources(prefix: IpNet) -> usize {
    let length = match prefix {
        IpNet::V4(prefix) => 32 - prefix.prefix_len(),
        IpNet::V6(prefix) => 64_u8.saturating_sub(prefix.prefix_len()),
    };
    if length < 16 { 1 << length } else { 1 << 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_prefixes_weigh_more() {
        let weight = |prefix: &str| {
            let prefix = prefix.parse().unwrap();
            KnownApplier::weight(&KnownChange::Trust { prefix, for_ns: 1 })
        };
        assert_eq!(weight("192.0.2.1/32"), 1);
        assert_eq!(weight("2001:db8::1/128"), 1);
        assert_eq!(weight("192.0.2.0/24"), 5);
        assert_eq!(weight("198.18.0.0/16"), 1_025);
        assert_eq!(weight("::/0"), 1_025);
    }

    #[test]
    fn totals() {
        let counts = KnownCounts {
            known: 1_200,
            bad: 3,
            ..KnownCounts::default()
        };
        let expected = "known 1 200, forgotten 0, refused 0, bad 3";
        assert_eq!(counts.to_string(), expected);
    }
}
