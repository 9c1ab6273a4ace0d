//! The metrics as text, rendered at most once a second.

use std::{fmt, sync::Arc, time::Instant};

use hyper::body::Bytes;
use limiter_protocol::{Failure, web::DaemonView};
use prometheus_client::{encoding::text::encode, metrics::info::Info, registry::Registry};
use thiserror::Error;

use super::{
    collector::MeasurementsCollector,
    format::{Format, prometheus},
};
use crate::fresh::ShortCache;

/// Renders the metrics, and caches the text.
pub(super) struct Scrapes {
    daemon: Arc<DaemonView>,
    last: ShortCache<Texts, ScrapeError>,
}

#[derive(Clone)]
struct Texts {
    prometheus: Bytes,
    open_metrics: Bytes,
}

/// The metrics could not be rendered.
#[derive(Debug, Error)]
pub(super) enum ScrapeError {
    /// The counters could not be read from the kernel.
    #[error("cannot read the counters for /metrics: {0}")]
    Read(Failure),
    /// The counters could not be written as text.
    #[error("cannot write the counters for /metrics: {0}")]
    Format(#[from] fmt::Error),
}

impl Scrapes {
    pub(super) fn new(daemon: Arc<DaemonView>) -> Self {
        Self {
            daemon,
            last: ShortCache::new(),
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
        let measurements = (self.daemon.measurements)().map_err(ScrapeError::Read)?;
        let mut registry = Registry::default();
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("limiter_build", "The build that runs", Info::new(build));
        registry.register_collector(Box::new(MeasurementsCollector(measurements)));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(Texts {
            prometheus: prometheus(&text).into(),
            open_metrics: text.into(),
        })
    }
}
