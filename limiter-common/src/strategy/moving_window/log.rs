//! A copy of a moving window's log, for reports.

use super::{Cursor, STAMPS};

/// The same as [`STAMPS`], for arrays.
const LOG_LENGTH: usize = 128;

const _: () = assert!(LOG_LENGTH as u64 == STAMPS);

/// The TATs of a log's packets, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// By the number of the stamp; 0: there is none.
    pub stamps: [u64; LOG_LENGTH],
}

impl Log {
    /// The log of no packets.
    pub const EMPTY: Self = Self {
        stamps: [0; LOG_LENGTH],
    };

    /// Reads the log of a bucket; `stamp` returns each stamp by its number, 0: there is none.
    ///
    /// # Errors
    ///
    /// Those of `stamp`.
    pub fn read<E>(mut stamp: impl FnMut(u64) -> Result<u64, E>) -> Result<Self, E> {
        let mut log = Self::EMPTY;
        for (number, known) in (0..).zip(&mut log.stamps) {
            *known = stamp(number)?;
        }
        Ok(log)
    }

    /// Returns the stamp of that number; 0: there is none.
    #[must_use]
    pub fn stamp(&self, number: u64) -> u64 {
        let number = usize::try_from(number).unwrap_or_default();
        self.stamps[number % LOG_LENGTH]
    }

    /// Returns the TAT of the `nth` last packet that passed.
    pub(in crate::strategy) fn nth_last(&self, cursor: Cursor, nth: u64) -> u64 {
        if nth == 1 {
            cursor.last
        } else {
            self.stamp(cursor.stamp(nth))
        }
    }
}
