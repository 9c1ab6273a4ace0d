//! Applies changes from stdin, from a pipe that may stay open for years. Changes are applied as they arrive, up
//! to a thousand together.

pub(super) mod item;
pub(super) mod lines;

use std::{
    fmt::Display,
    io::{self, StdinLock, Write as _},
    sync::mpsc::{Receiver, sync_channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use limiter_policy::text::one_line;
use limiter_protocol::MAX_CHANGES;
use serde::Serialize;

use self::item::{Item, ItemNumber, Sink};
use super::output::{print_json, stderr, stdout};

/// How long to wait for more changes: at a thousand lines a second, a request per line costs the daemon ten
/// times as much as a request per twenty lines.
const GATHER: Duration = Duration::from_millis(20);

/// The most items to read ahead.
const AHEAD: usize = 4 * MAX_CHANGES;

/// Applies changes, and counts the results.
pub(super) trait Applier {
    type Change: Send + 'static;

    /// The number of changes with each result.
    type Counts: Display + Serialize;

    /// Returns the cost of a change in ordinary changes.
    fn weight(_change: &Self::Change) -> usize {
        1
    }

    /// Applies changes. Returns the refused ones by index, each with the reason.
    fn apply(&mut self, changes: Vec<Self::Change>) -> anyhow::Result<Vec<(usize, String)>>;

    /// Counts an item that cannot be applied.
    fn count_bad(&mut self);

    /// Counts an item without a change.
    fn count_skipped(&mut self);

    fn counts(&self) -> &Self::Counts;

    fn is_complete(&self) -> bool;

    /// Returns a further message for the end.
    fn notice(&self) -> Option<&'static str>;
}

/// Applies the changes that `read` finds on stdin until it ends.
pub(super) fn apply<A: Applier>(
    applier: A,
    json: bool,
    read: impl FnOnce(&mut StdinLock<'_>, &Sink<A::Change>) + Send + 'static,
) -> anyhow::Result<()> {
    let (sender, items) = sync_channel(AHEAD);
    // Reads on a thread of its own, so that waiting for input does not delay changes.
    thread::spawn(move || read(&mut io::stdin().lock(), &Sink(sender)));
    let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template("{msg}")?);
    let mut applying = StreamProgress { applier, bar };
    let outcome = applying.apply_all(&items);
    applying.bar.finish_and_clear();
    let applier = applying.applier;
    if json {
        print_json(applier.counts())?;
    } else {
        let mut out = stdout();
        writeln!(out, "{}", applier.counts())?;
        if let Some(notice) = applier.notice() {
            writeln!(out, "{notice}")?;
        }
    }
    outcome?;
    if !applier.is_complete() {
        bail!("not everything was applied");
    }
    Ok(())
}

struct StreamProgress<A> {
    applier: A,
    bar: ProgressBar,
}

impl<A: Applier> StreamProgress<A> {
    fn apply_all(&mut self, items: &Receiver<Item<A::Change>>) -> anyhow::Result<()> {
        while let Ok(first) = items.recv() {
            let deadline = Instant::now() + GATHER;
            let (mut item_numbers, mut changes) = (Vec::new(), Vec::new());
            let mut broken = None;
            let mut gathered = 0;
            let mut item = Some(first);
            while let Some(now) = item {
                match now {
                    Item::Change(item_number, change) => {
                        gathered += A::weight(&change);
                        item_numbers.push(item_number);
                        changes.push(change);
                    }
                    Item::Warning(item_number, warning) => self.print_line(item_number, &warning),
                    Item::Bad(item_number, error) => {
                        gathered += 1;
                        self.applier.count_bad();
                        self.print_line(item_number, &error);
                    }
                    Item::Skipped => {
                        gathered += 1;
                        self.applier.count_skipped();
                    }
                    Item::Broken(error) => broken = Some(error),
                }
                let left = deadline.saturating_duration_since(Instant::now());
                item = (gathered < MAX_CHANGES)
                    .then(|| items.recv_timeout(left).ok())
                    .flatten();
            }
            if !changes.is_empty() {
                for (index, refusal) in self.applier.apply(changes)? {
                    if let Some(item_number) = item_numbers.get(index) {
                        self.print_line(*item_number, &refusal);
                    }
                }
            }
            if let Some(error) = broken {
                bail!("cannot read stdin any further: {error}");
            }
            self.bar.set_message(self.applier.counts().to_string());
        }
        Ok(())
    }

    fn print_line(&self, item_number: ItemNumber, message: &str) {
        let line = format!("{item_number}: {message}");
        // The line may quote arbitrary text from the stream. Ignore errors: without stderr, there is nowhere to
        // report them.
        self.bar
            .suspend(|| _ = writeln!(stderr(), "{}", one_line(&line)));
    }
}
