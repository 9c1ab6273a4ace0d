//! The items of a stream.

use std::{fmt, sync::mpsc::SyncSender};

use crate::cli::parse::ParsedValue;

/// An item of a stream of changes.
pub(in crate::cli) enum Item<C> {
    /// A change, and the number of its line or decision.
    Change(ItemNumber, C),
    /// A line or decision with a value that differs from its spelling, and a warning.
    Warning(ItemNumber, String),
    /// A line or decision that cannot be applied, and why.
    Bad(ItemNumber, String),
    /// A decision that asks for no change.
    Skipped,
    /// The stream cannot be read further.
    Broken(String),
}

/// A position in the stream, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum ItemNumber {
    Line(u64),
    Decision(u64),
}

impl fmt::Display for ItemNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(formatter, "line {number}"),
            Self::Decision(number) => write!(formatter, "decision {number}"),
        }
    }
}

/// The receiver is gone.
pub(in crate::cli) struct ReceiverGone;

pub(in crate::cli) struct Sink<C>(pub(in crate::cli) SyncSender<Item<C>>);

impl<C> Sink<C> {
    pub(in crate::cli) fn put_change(
        &self,
        number: ItemNumber,
        change: ParsedValue<C>,
    ) -> Result<(), ReceiverGone> {
        if let Some(warning) = change.warning {
            self.put(Item::Warning(number, warning))?;
        }
        self.put(Item::Change(number, change.value))
    }

    pub(in crate::cli) fn put(&self, item: Item<C>) -> Result<(), ReceiverGone> {
        self.0.send(item).map_err(|_| ReceiverGone)
    }
}
