//! The items of a stream.

use std::{fmt, sync::mpsc::SyncSender};

use crate::protocol::bans::BanChange;

/// An item of the stream.
pub(super) enum Item {
    /// A ban to make or to lift, and the line or decision that asked for it.
    Change(ItemNumber, BanChange),
    /// A line or decision that cannot be applied, and why.
    Bad(ItemNumber, String),
    /// A decision that is not a ban of an address or a range.
    Skipped,
    /// The stream cannot be read further.
    Broken(String),
}

/// A position in the stream, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemNumber {
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
pub(super) struct Ended;

/// Sends items to the thread that applies them.
pub(super) struct Sink(pub(super) SyncSender<Item>);

impl Sink {
    pub(super) fn put(&self, item: Item) -> Result<(), Ended> {
        self.0.send(item).map_err(|_| Ended)
    }
}
