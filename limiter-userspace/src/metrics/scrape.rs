//! The metrics as text, made anew at most once a second.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hyper::body::Bytes;
use prometheus_client::{encoding::text::encode, metrics::info::Info, registry::Registry};

use super::collector::DaemonCollector;
use crate::daemon::Daemon;

/// For how long a text is told: reading the counters takes time, and keeps changes of the policy
/// waiting.
const FRESH: Duration = Duration::from_secs(1);

/// Makes the text.
pub(super) struct Scrapes {
    registry: Registry,
    last: Mutex<Option<Scrape>>,
}

struct Scrape {
    made: Instant,
    text: Result<Bytes, fmt::Error>,
}

impl Scrapes {
    pub(super) fn new(daemon: Arc<Daemon>) -> Self {
        let mut registry = Registry::default();
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("limiter_build", "The build that runs", Info::new(build));
        registry.register_collector(Box::new(DaemonCollector(daemon)));
        Self {
            registry,
            last: Mutex::default(),
        }
    }

    /// The text, as of a second ago at most.
    pub(super) fn text(&self) -> Result<Bytes, fmt::Error> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scrape) = &*last
            && scrape.made.elapsed() < FRESH
        {
            return scrape.text.clone();
        }
        let mut text = String::new();
        let text = encode(&mut text, &self.registry).map(|()| Bytes::from(text));
        *last = Some(Scrape {
            // However long it has taken.
            made: Instant::now(),
            text: text.clone(),
        });
        text
    }
}
