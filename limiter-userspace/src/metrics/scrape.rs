//! The metrics as text, rendered at most once a second.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hyper::body::Bytes;
use limiter_datapath::kernel::DatapathError;
use prometheus_client::{encoding::text::encode, metrics::info::Info, registry::Registry};
use thiserror::Error;
use tracing::warn;

use super::{
    collector::{DaemonCollector, Failure},
    format::{Format, prometheus},
};
use crate::daemon::Daemon;

/// How long a text is reused: reading the counters takes time and delays changes of the policy.
const FRESH: Duration = Duration::from_secs(1);

/// Renders the metrics.
pub(super) struct Scrapes {
    registry: Registry,
    failure: Failure,
    last: LastScrape<Texts>,
}

/// The metrics in each format.
#[derive(Clone)]
struct Texts {
    prometheus: Bytes,
    open_metrics: Bytes,
}

/// The last text, or why there is none.
struct LastScrape<T>(Mutex<Option<Scrape<T>>>);

struct Scrape<T> {
    made: Instant,
    text: Result<T, Arc<ScrapeError>>,
}

/// The metrics could not be rendered.
#[derive(Debug, Error)]
pub(super) enum ScrapeError {
    /// The counters could not be read from the kernel.
    #[error("cannot read the counters for /metrics: {0}")]
    Datapath(#[source] DatapathError),
    /// The counters could not be written as text.
    #[error("cannot write the counters for /metrics: {0}")]
    Format(#[source] fmt::Error),
}

impl Scrapes {
    pub(super) fn new(daemon: Arc<Daemon>) -> Self {
        let mut registry = Registry::default();
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("limiter_build", "The build that runs", Info::new(build));
        let failure = Failure::default();
        let collector = DaemonCollector::new(daemon, failure.clone());
        registry.register_collector(Box::new(collector));
        Self {
            registry,
            failure,
            last: LastScrape::new(),
        }
    }

    /// Returns the text, at most a second old. Logs the first error after a success.
    pub(super) fn text(&self, format: Format) -> Result<Bytes, Arc<ScrapeError>> {
        let texts = self.last.or_make(Instant::now, || self.make())?;
        Ok(match format {
            Format::Prometheus => texts.prometheus,
            Format::OpenMetrics => texts.open_metrics,
        })
    }

    fn make(&self) -> Result<Texts, ScrapeError> {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => Ok(Texts {
                prometheus: prometheus(&text).into(),
                open_metrics: text.into(),
            }),
            Err(error) => Err(match self.failure.take() {
                Some(cause) => ScrapeError::Datapath(cause),
                None => ScrapeError::Format(error),
            }),
        }
    }
}

impl<T: Clone> LastScrape<T> {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the text if it is fresh at the time that `now` returns, else what `make` returns.
    fn or_make(
        &self,
        now: impl Fn() -> Instant,
        make: impl FnOnce() -> Result<T, ScrapeError>,
    ) -> Result<T, Arc<ScrapeError>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scrape) = &*last
            && now() < scrape.made + FRESH
        {
            return scrape.text.clone();
        }
        let text = make().map_err(Arc::new);
        let had_failed = last.as_ref().is_some_and(|scrape| scrape.text.is_err());
        if let (Err(error), false) = (&text, had_failed) {
            warn!("{error}");
        }
        *last = Some(Scrape {
            // Counts from the end of rendering, however long that took.
            made: now(),
            text: text.clone(),
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Counts how often the text is made, each time with this result, which takes so long.
    struct Scene {
        last: LastScrape<String>,
        now: Cell<Instant>,
        takes: Duration,
        made: Cell<u32>,
        succeeds: bool,
    }

    impl Scene {
        fn new(takes: Duration, succeeds: bool) -> Self {
            Self {
                last: LastScrape::new(),
                now: Cell::new(Instant::now()),
                takes,
                made: Cell::new(0),
                succeeds,
            }
        }

        fn wait(&self, time: Duration) {
            self.now.set(self.now.get() + time);
        }

        /// Asks for the text; returns how often it was made so far.
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
                        Err(ScrapeError::Format(fmt::Error))
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
            // Of one that takes longer than a text is fresh, those who wait for it have the result.
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
