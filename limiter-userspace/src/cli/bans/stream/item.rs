//! What is in a stream.

use std::{fmt, sync::mpsc::SyncSender};

use crate::protocol::bans::BanChange;

/// Something from the stream.
pub(super) enum Item {
    /// A ban to make or to lift; in which line, or which decision it was.
    Change(Place, BanChange),
    /// Nothing that can be applied, and why.
    Bad(Place, String),
    /// Something that is no ban of an address or a range.
    Skipped,
    /// The stream cannot be read any more.
    Broken(String),
}

/// Where something stands in the stream, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Line(u64),
    Decision(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(formatter, "line {number}"),
            Self::Decision(number) => write!(formatter, "decision {number}"),
        }
    }
}

/// Nobody wants to know more.
pub(super) struct Ended;

/// Where items go.
pub(super) struct Sink(pub(super) SyncSender<Item>);

impl Sink {
    pub(super) fn put(&self, item: Item) -> Result<(), Ended> {
        self.0.send(item).map_err(|_| Ended)
    }
}
