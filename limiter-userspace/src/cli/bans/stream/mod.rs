//! `limiter ban --stdin`: applies bans as they arrive, on a pipe that may stay open for years. What
//! has arrived is applied at once, up to a thousand changes together.

mod counts;
mod crowdsec;
mod item;
mod lines;

use std::{
    io::{self, BufRead, Write as _},
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use limiter_policy::text::{one_line, short};

use self::{
    counts::Counts,
    item::{Item, ItemNumber, Sink},
};
use super::{change::change, terms::Terms};
use crate::{
    cli::{args::ReadArgs, output::print_json},
    guard::Session,
    protocol::bans::{BanChange, BanChanges, BanOutcome, MAX_CHANGES},
};

/// How long to wait for more changes: at a thousand lines a second, a request per line costs the
/// daemon ten times as much as a request per twenty lines.
const GATHER: Duration = Duration::from_millis(20);

/// How many items may be read ahead.
const AHEAD: usize = 4 * MAX_CHANGES;

/// Applies what arrives on stdin until it ends.
pub(super) fn stream(
    read: &ReadArgs,
    terms: &Terms,
    force: bool,
    json: bool,
) -> anyhow::Result<()> {
    let (sender, items) = sync_channel(AHEAD);
    let terms = terms.clone();
    // In a thread of its own, so that this one can apply changes while that one waits for more.
    thread::spawn(move || read_all(&mut io::stdin().lock(), &terms, &Sink(sender)));
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{msg}")?);
    let mut applying = Applying {
        read,
        force,
        session: Session::own(),
        bar,
        counts: Counts::default(),
        ends_with_daemon: false,
    };
    let applied = applying.apply_all(&items);
    applying.bar.finish_and_clear();
    let counts = applying.counts;
    if json {
        print_json(&counts)?;
    } else {
        let mut out = io::stdout();
        writeln!(out, "{counts}")?;
        if applying.ends_with_daemon {
            writeln!(
                out,
                "bans end with the daemon: it has neither pins (run --pin) nor a state file"
            )?;
        }
    }
    applied?;
    if counts.refused + counts.bad > 0 {
        bail!("not everything was applied");
    }
    Ok(())
}

/// Reads CrowdSec decisions if the input begins with a bracket or brace, lines otherwise.
fn read_all(input: &mut impl BufRead, terms: &Terms, sink: &Sink) {
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
    // If the receiver is gone, nobody is left to tell.
    let _ = if is_json {
        crowdsec::read(input, terms, sink)
    } else {
        lines::read(input, terms, sink)
    };
}

/// Applies the items of the stream.
struct Applying<'r> {
    read: &'r ReadArgs,
    force: bool,
    session: Option<Session>,
    bar: ProgressBar,
    counts: Counts,
    ends_with_daemon: bool,
}

impl Applying<'_> {
    fn apply_all(&mut self, items: &Receiver<Item>) -> anyhow::Result<()> {
        while let Ok(first) = items.recv() {
            let deadline = Instant::now() + GATHER;
            let (mut item_numbers, mut changes) = (Vec::new(), Vec::new());
            let mut broken = None;
            let mut gathered = 0;
            let mut item = Some(first);
            while let Some(now) = item {
                gathered += 1;
                match now {
                    Item::Change(item_number, change) => {
                        item_numbers.push(item_number);
                        changes.push(change);
                    }
                    Item::Bad(item_number, error) => {
                        self.counts.bad += 1;
                        self.say(&format!("{item_number}: {error}"));
                    }
                    Item::Skipped => self.counts.skipped += 1,
                    Item::Broken(error) => broken = Some(error),
                }
                let left = deadline.saturating_duration_since(Instant::now());
                item = (gathered < MAX_CHANGES)
                    .then(|| items.recv_timeout(left).ok())
                    .flatten();
            }
            if !changes.is_empty() {
                self.apply(&item_numbers, changes)?;
            }
            if let Some(error) = broken {
                bail!("cannot read stdin any further: {error}");
            }
            self.bar.set_message(self.counts.to_string());
        }
        Ok(())
    }

    fn apply(
        &mut self,
        item_numbers: &[ItemNumber],
        changes: Vec<BanChange>,
    ) -> anyhow::Result<()> {
        let wanted = BanChanges {
            changes,
            force: self.force,
            together: false,
            session: self.session,
        };
        let answer = change(self.read, &wanted)?;
        self.ends_with_daemon = answer.ends_with_daemon;
        for ((item_number, change), outcome) in item_numbers
            .iter()
            .zip(&wanted.changes)
            .zip(answer.outcomes)
        {
            if let BanOutcome::Refused { reason } = &outcome {
                let prefix = short(change.prefix());
                self.say(&format!("{item_number}: {prefix} is not banned: {reason}"));
            }
            self.counts.add(&outcome);
        }
        Ok(())
    }

    fn say(&self, line: &str) {
        // The line may quote arbitrary text from the stream. If stderr is gone, nobody is left to
        // tell.
        self.bar
            .suspend(|| _ = writeln!(io::stderr(), "{}", one_line(line)));
    }
}
