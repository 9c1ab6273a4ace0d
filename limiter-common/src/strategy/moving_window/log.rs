//! The length of a moving window's log, and a copy of one for reports.

/// The number of stamps of a log, and so the maximum count of a limit.
pub const STAMPS: u64 = LOG_LENGTH as u64;

/// The same, for arrays.
const LOG_LENGTH: usize = 128;

/// The TATs of a log's packets, for reports.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// By the number of the stamp; 0: there is none.
    pub stamps: [u64; LOG_LENGTH],
}

#[cfg(not(target_arch = "bpf"))]
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
}
