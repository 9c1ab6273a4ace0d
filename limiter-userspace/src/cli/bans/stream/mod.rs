//! `limiter ban --stdin`: applies bans as they arrive.

mod counts;
mod crowdsec;
mod line;

use std::io::BufRead;

use limiter_host::guard;
use limiter_policy::text::short;
use limiter_protocol::bans::{BanChange, BanChanges, BanOutcome, Session};

use self::counts::BanOutcomeCounts;
use super::{ENDS_WITH_DAEMON, change::change, terms::Terms};
use crate::cli::{
    args::ReadArgs,
    stream::{
        self, Applier,
        item::{Item, Sink},
        lines,
    },
};

/// Applies changes from stdin until it ends.
pub(super) fn stream(
    read: &ReadArgs,
    terms: &Terms,
    force: bool,
    json: bool,
) -> anyhow::Result<()> {
    terms.length.value_with_warning();
    let terms = terms.clone();
    let applier = BanApplier {
        read,
        force,
        session: guard::started_from(),
        counts: BanOutcomeCounts::default(),
        ends_with_daemon: false,
    };
    stream::apply(applier, json, move |input, sink| {
        read_all(input, &terms, sink);
    })
}

/// Reads CrowdSec decisions if the input begins with a bracket or brace, lines otherwise.
fn read_all(input: &mut impl BufRead, terms: &Terms, sink: &Sink<BanChange>) {
    let is_json = loop {
        match input.fill_buf() {
            Ok(buffer) => match buffer.iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(at) => break matches!(buffer[at], b'[' | b'{'),
                // Empty lines must not be lost: error messages give line numbers.
                None if buffer.is_empty() || buffer.contains(&b'\n') => break false,
                None => {
                    let length = buffer.len();
                    input.consume(length);
                }
            },
            Err(error) => {
                let _ = sink.put(Item::Broken(error.to_string()));
                return;
            }
        }
    };
    // Ignore errors: the receiver is gone, so there is no reason to read on.
    let _ = if is_json {
        crowdsec::read(input, terms, sink)
    } else {
        lines::read(input, |line| line::parse(line, terms), sink)
    };
}

struct BanApplier<'r> {
    read: &'r ReadArgs,
    force: bool,
    session: Option<Session>,
    counts: BanOutcomeCounts,
    ends_with_daemon: bool,
}

impl Applier for BanApplier<'_> {
    type Change = BanChange;
    type Counts = BanOutcomeCounts;

    fn apply(&mut self, changes: Vec<BanChange>) -> anyhow::Result<Vec<(usize, String)>> {
        let wanted = BanChanges {
            changes,
            force: self.force,
            together: false,
            session: self.session,
        };
        let response = change(self.read, &wanted)?;
        self.ends_with_daemon |= response.ends_with_daemon;
        let mut refused = Vec::new();
        for (index, (change, outcome)) in wanted.changes.iter().zip(response.outcomes).enumerate() {
            self.counts.add(&outcome);
            if let BanOutcome::Refused { reason } = outcome {
                let prefix = short(change.prefix());
                refused.push((index, format!("{prefix} is not banned: {reason}")));
            }
        }
        Ok(refused)
    }

    fn count_bad(&mut self) {
        self.counts.bad += 1;
    }

    fn count_skipped(&mut self) {
        self.counts.skipped += 1;
    }

    fn counts(&self) -> &BanOutcomeCounts {
        &self.counts
    }

    fn is_complete(&self) -> bool {
        self.counts.refused + self.counts.bad == 0
    }

    fn notice(&self) -> Option<&'static str> {
        self.ends_with_daemon.then_some(ENDS_WITH_DAEMON)
    }
}
