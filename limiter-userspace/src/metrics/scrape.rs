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

use super::collector::{DaemonCollector, Failure};
use crate::daemon::Daemon;

/// How long a text is reused: reading the counters takes time and delays changes of the policy.
const FRESH: Duration = Duration::from_secs(1);

/// Renders the metrics.
pub(super) struct Scrapes {
    registry: Registry,
    failure: Failure,
    last: Mutex<Option<Scrape>>,
}

struct Scrape {
    made: Instant,
    text: Result<Bytes, Arc<ScrapeError>>,
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
            last: Mutex::default(),
        }
    }

    /// Returns the text, at most a second old. Logs the first error after a success.
    pub(super) fn text(&self) -> Result<Bytes, Arc<ScrapeError>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scrape) = &*last
            && scrape.made.elapsed() < FRESH
        {
            return scrape.text.clone();
        }
        let text = self.make().map_err(Arc::new);
        let had_failed = last.as_ref().is_some_and(|scrape| scrape.text.is_err());
        if let (Err(error), false) = (&text, had_failed) {
            warn!("{error}");
        }
        *last = Some(Scrape {
            // Counts from the end of rendering, however long that took.
            made: Instant::now(),
            text: text.clone(),
        });
        text
    }

    fn make(&self) -> Result<Bytes, ScrapeError> {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => Ok(Bytes::from(text)),
            Err(error) => Err(match self.failure.take() {
                Some(cause) => ScrapeError::Datapath(cause),
                None => ScrapeError::Format(error),
            }),
        }
    }
}
