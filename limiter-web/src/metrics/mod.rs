//! Prometheus metrics over HTTP, on a thread of their own. The worst that a client can do is keep this thread
//! busy: it serves few connections, each for a short time, and reads the counters at most once a second.

mod automatic_bans;
mod automatic_rates;
mod bans;
mod collector;
mod connections;
mod fleet;
mod format;
mod interfaces;
mod labelled;
mod limits;
mod lists;
mod plain;
mod process;
mod queues;
mod scrape;
mod server;
mod server_names;
mod sieves;
mod standing;
mod traffic;

use std::{net::SocketAddr, sync::Arc};

use limiter_protocol::web::BindResult;

use self::{scrape::Scrapes, server::MetricsService};
use crate::{http::Port, visitors::Visitors};

/// Binds the port, for requests to its address or one of the names `hosts`.
pub fn bind(address: SocketAddr, hosts: &[String]) -> BindResult<SocketAddr> {
    let (address, port) = Port::bind(address)?;
    let visitors = Visitors::new(Some(address.ip()), hosts.to_vec());
    let serve = Box::new(move |daemon, thread| {
        port.serve(thread, async move |listener, check_in| {
            let service = MetricsService {
                scrapes: Scrapes::new(daemon),
                visitors,
            };
            server::serve(listener, Arc::new(service), check_in).await
        })
    });
    Ok((address, serve))
}
