//! The length of a moving window's log, and a copy of a log for reports.

/// The number of stamps of a log, and so the maximum count of a limit.
pub const STAMPS: u64 = LOG_LENGTH as u64;

/// [`STAMPS`], for arrays.
const LOG_LENGTH: usize = 128;

/// The TATs of a log's packets, for reports.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The stamps by number; 0: no stamp.
    pub stamps: [u64; LOG_LENGTH],
}

#[cfg(not(target_arch = "bpf"))]
impl Log {
    /// The log without packets.
    pub const EMPTY: Self = Self {
        stamps: [0; LOG_LENGTH],
    };

    /// Reads the log of a bucket; `stamp` returns each stamp by its number, and 0 for a missing
    /// one.
    ///
    /// # Errors
    ///
    /// The errors of `stamp`.
    pub fn read<E>(mut stamp: impl FnMut(u64) -> Result<u64, E>) -> Result<Self, E> {
        let mut log = Self::EMPTY;
        for (number, known) in (0..).zip(&mut log.stamps) {
            *known = stamp(number)?;
        }
        Ok(log)
    }

    /// The stamp with this number; 0: no stamp.
    #[must_use]
    pub fn stamp(&self, number: u64) -> u64 {
        let number = usize::try_from(number).unwrap_or_default();
        self.stamps[number % LOG_LENGTH]
    }
}
