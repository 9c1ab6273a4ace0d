//! Changes of bans, for those to whom they are told: the nodes of a fleet.

use std::{mem, sync::Arc};

use ipnet::IpNet;
use limiter_common::ban::Ban;
use tokio::sync::Notify;

/// The most changes that wait to be told.
const MOST: usize = 200_000;

/// A ban that was made or lifted.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Changed {
    /// The prefix.
    pub(in crate::daemon) prefix: IpNet,
    /// The ban.
    pub(in crate::daemon) ban: Ban,
    /// Whether it was lifted.
    pub(in crate::daemon) is_lifted: bool,
}

/// The changes since they were last taken.
#[derive(Debug)]
pub(super) struct Journal {
    changes: Vec<Changed>,
    /// How many there was no room for.
    lost: u64,
    written: Arc<Notify>,
}

impl Journal {
    /// Returns an empty journal. `written` is notified whenever there is something new.
    pub(super) const fn new(written: Arc<Notify>) -> Self {
        Self {
            changes: Vec::new(),
            lost: 0,
            written,
        }
    }

    pub(super) fn write(&mut self, changed: Changed) {
        if self.changes.len() < MOST {
            self.changes.push(changed);
        } else {
            self.lost += 1;
        }
        self.written.notify_one();
    }

    /// Takes the changes, the oldest first, and how many were lost.
    pub(super) fn take(&mut self) -> (Vec<Changed>, u64) {
        (mem::take(&mut self.changes), mem::take(&mut self.lost))
    }
}
