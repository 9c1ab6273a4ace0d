//! Prometheus metrics over HTTP.

mod collector;
mod sieves;

use std::{io, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::text::encode, metrics::info::Info, registry::Registry};
use tokio::{net::TcpListener, task::JoinHandle};
use tracing::error;

use self::collector::DaemonCollector;
use crate::daemon::Daemon;

/// The media type of the text format that is served.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The port is taken, nothing is served yet.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Serves until it is dropped.
pub struct Metrics(JoinHandle<()>);

impl Metrics {
    /// Takes the port.
    pub async fn bind(address: SocketAddr) -> io::Result<Listener> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Listener { listener, address })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Listener {
    /// Where it listens: the port is the real one where 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `/metrics`.
    #[must_use]
    pub fn serve(self, daemon: Arc<Daemon>) -> Metrics {
        let mut registry = Registry::default();
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("limiter_build", "The build that runs", Info::new(build));
        registry.register_collector(Box::new(DaemonCollector(daemon)));
        let registry = Arc::new(registry);
        let router = Router::new().route("/metrics", get(async move || scrape(&registry)));
        Metrics(tokio::spawn(async move {
            if let Err(error) = axum::serve(self.listener, router).await {
                error!("metrics are served no more: {error}");
            }
        }))
    }
}

fn scrape(registry: &Registry) -> impl IntoResponse + use<> {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => (StatusCode::OK, [(header::CONTENT_TYPE, CONTENT_TYPE)], text),
        Err(_) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            [(header::CONTENT_TYPE, "text/plain")],
            "the counters could not be read\n".to_owned(),
        ),
    }
}
