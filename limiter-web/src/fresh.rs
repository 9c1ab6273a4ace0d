//! Caches a slow read for a second.

use std::{
    fmt::Display,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tracing::warn;

/// How long a result is reused: reading the counters takes time and delays changes of the policy.
const FRESH: Duration = Duration::from_secs(1);

/// The last result.
pub(crate) struct ShortCache<T, E>(Mutex<Option<CachedResult<T, E>>>);

struct CachedResult<T, E> {
    at: Instant,
    result: Result<T, Arc<E>>,
}

impl<T: Clone, E: Display> ShortCache<T, E> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the last result if it is fresh at the time that `now` returns, else the result of `make`. Logs
    /// the first error after a success.
    pub(crate) fn or_make(
        &self,
        now: impl Fn() -> Instant,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, Arc<E>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*last
            && now() < made.at + FRESH
        {
            return made.result.clone();
        }
        let result = make().map_err(Arc::new);
        let had_failed = last.as_ref().is_some_and(|made| made.result.is_err());
        if let (Err(error), false) = (&result, had_failed) {
            warn!("{error}");
        }
        *last = Some(CachedResult {
            // The age counts from the end of `make`, however long it took.
            at: now(),
            result: result.clone(),
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts the calls of `make`. Each takes some time and has the given result.
    struct Scene {
        last: ShortCache<String, &'static str>,
        now: Cell<Instant>,
        takes: Duration,
        made: Cell<u32>,
        succeeds: bool,
    }

    impl Scene {
        fn new(takes: Duration, succeeds: bool) -> Self {
            Self {
                last: ShortCache::new(),
                now: Cell::new(Instant::now()),
                takes,
                made: Cell::new(0),
                succeeds,
            }
        }

        fn wait(&self, time: Duration) {
            self.now.set(self.now.get() + time);
        }

        /// Requests the value; returns the number of calls of `make` so far.
        #[track_caller]
        fn asked(&self) -> u32 {
            let text = self.last.or_make(
                || self.now.get(),
                || {
                    self.wait(self.takes);
                    self.made.set(self.made.get() + 1);
                    if self.succeeds {
                        Ok(self.made.get().to_string())
                    } else {
                        Err("a failure")
                    }
                },
            );
            match text {
                Ok(text) => assert_eq!(text, self.made.get().to_string()),
                Err(_) => assert!(!self.succeeds),
            }
            self.made.get()
        }
    }

    #[test]
    fn it_is_made_at_most_once_a_second() {
        for (takes, succeeds) in [
            (Duration::ZERO, true),
            (Duration::ZERO, false),
            // Even if `make` takes longer than a result is fresh, callers that waited for it get its result.
            (3 * FRESH, true),
        ] {
            let scene = Scene::new(takes, succeeds);
            assert_eq!(scene.asked(), 1);
            for _ in 0..1_000 {
                assert_eq!(scene.asked(), 1);
            }
            scene.wait(FRESH / 2);
            assert_eq!(scene.asked(), 1);
            scene.wait(FRESH / 2);
            assert_eq!(scene.asked(), 2);
            assert_eq!(scene.asked(), 2);
        }
    }
}
