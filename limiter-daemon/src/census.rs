//! The number of entries of a large table. Counting reads the whole table, 64 MiB of known sources by default,
//! so frequent scrapes get the last count.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use limiter_datapath::kernel::{Datapath, DatapathError};

/// The pause after a count, as a multiple of the count's duration: counting takes at most a twentieth of a CPU.
const PAUSE: u32 = 20;

/// The longest pause: an older count would be out of date.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The last count of a table.
#[derive(Debug, Default)]
pub(super) struct Census<T>(Mutex<Option<CensusResult<T>>>);

#[derive(Clone, Copy, Debug)]
struct CensusResult<T> {
    /// The policy at that time: another policy may have another table.
    generation: u64,
    numbers: T,
    /// When the count ended.
    at: Instant,
    took: Duration,
}

impl<T: Copy> Census<T> {
    /// Returns the result of `count`, or a recent earlier one, and its age.
    pub(super) fn numbers(
        &self,
        datapath: &Datapath,
        count: impl FnOnce() -> Result<T, DatapathError>,
    ) -> Result<(T, Duration), DatapathError> {
        // The value is valid after each assignment, so a poisoned lock is harmless.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = datapath.manifest().generation;
        if let Some(counted) = *last {
            let age = counted.at.elapsed();
            if counted.generation == generation && age < pause(counted.took) {
                return Ok((counted.numbers, age));
            }
        }
        let begun = Instant::now();
        let numbers = count()?;
        let at = Instant::now();
        *last = Some(CensusResult {
            generation,
            numbers,
            at,
            took: at - begun,
        });
        Ok((numbers, Duration::ZERO))
    }
}

/// Returns how long to serve a count that took this long.
fn pause(took: Duration) -> Duration {
    took.saturating_mul(PAUSE).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_table_is_counted_seldom() {
        let milliseconds = Duration::from_millis;
        assert_eq!(pause(Duration::ZERO), Duration::ZERO);
        assert_eq!(pause(milliseconds(40)), milliseconds(800));
        assert_eq!(pause(milliseconds(400)), milliseconds(8_000));
        assert_eq!(pause(milliseconds(4_000)), LONGEST_PAUSE);
    }
}
