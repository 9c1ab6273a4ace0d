//! How many entries a large table has. Counting reads all of it, 64 MiB of known sources by default,
//! so whoever asks often is told what was counted before.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use limiter_datapath::kernel::{Datapath, DatapathError};

/// The pause after a count, as a multiple of the time that it took: at most a twentieth of a CPU
/// counts.
const PAUSE: u32 = 20;

/// The longest pause: after it, what was counted is too old.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The last count of a table.
#[derive(Debug, Default)]
pub(super) struct Census<T>(Mutex<Option<Counted<T>>>);

#[derive(Clone, Copy, Debug)]
struct Counted<T> {
    /// The policy in force then: another one may have another table.
    generation: u64,
    numbers: T,
    /// When the count ended.
    at: Instant,
    took: Duration,
}

impl<T: Copy> Census<T> {
    /// Returns what `count` counts, or counted a short time ago, and how old these numbers are.
    pub(super) fn numbers(
        &self,
        datapath: &Datapath,
        count: impl FnOnce() -> Result<T, DatapathError>,
    ) -> Result<(T, Duration), DatapathError> {
        // The value is valid after each assignment, so a panic elsewhere spoils nothing.
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
        *last = Some(Counted {
            generation,
            numbers,
            at,
            took: at - begun,
        });
        Ok((numbers, Duration::ZERO))
    }
}

/// Returns how long a count that took so long serves.
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
