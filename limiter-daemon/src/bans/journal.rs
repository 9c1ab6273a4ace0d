//! Journal of ban changes, which the daemon sends to the other nodes of its fleet.

use std::{mem, sync::Arc};

use ipnet::IpNet;
use limiter_common::ban::Ban;
use tokio::sync::Notify;

/// The most changes that wait to be sent; further ones are only counted as lost.
const MOST: usize = 200_000;

/// A made or lifted ban.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalEntry {
    pub(crate) prefix: IpNet,
    pub(crate) ban: Ban,
    pub(crate) is_lifted: bool,
}

/// The changes since the last [`take`](Journal::take).
#[derive(Debug)]
pub(super) struct Journal {
    changes: Vec<JournalEntry>,
    /// The number of changes dropped because the journal was full.
    lost: u64,
    written: Arc<Notify>,
}

impl Journal {
    /// Returns an empty journal, which notifies `written` of each new entry.
    pub(super) const fn new(written: Arc<Notify>) -> Self {
        Self {
            changes: Vec::new(),
            lost: 0,
            written,
        }
    }

    pub(super) fn write(&mut self, changed: JournalEntry) {
        if self.changes.len() < MOST {
            self.changes.push(changed);
        } else {
            self.lost += 1;
        }
        self.written.notify_one();
    }

    /// Takes the changes, oldest first, and the number of lost ones.
    pub(super) fn take(&mut self) -> (Vec<JournalEntry>, u64) {
        (mem::take(&mut self.changes), mem::take(&mut self.lost))
    }
}
