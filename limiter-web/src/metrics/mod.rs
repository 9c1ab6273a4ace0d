//! Prometheus metrics over HTTP, on a thread of their own. The worst that a client can do is keep this thread
//! busy: it serves few connections, each for a short time, and reads the counters at most once a second.

mod cached_names;
mod capacity;
mod census;
mod collector;
mod connections;
mod format;
mod limits;
mod lists;
mod number;
mod process;
mod queues;
mod scrape;
mod server;
mod sieves;
mod standing;

use std::{io, net::SocketAddr, sync::Arc};

use limiter_daemon as daemon;
use limiter_daemon::{Daemon, Worker};

use self::{scrape::Scrapes, server::MetricsService};
use crate::{http::Port, visitors::Visitors};

struct Listener {
    port: Port,
    visitors: Visitors,
}

/// Binds the port, for requests to its address or one of the names `hosts`.
pub fn bind(address: SocketAddr, hosts: &[String]) -> daemon::BindResult<SocketAddr> {
    let (address, port) = Port::bind(address)?;
    let visitors = Visitors::new(Some(address.ip()), hosts.to_vec());
    Ok((address, Box::new(Listener { port, visitors })))
}

impl daemon::Listener for Listener {
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker> {
        let Self { port, visitors } = *self;
        port.serve(
            "metrics",
            daemon,
            |watchdog| &watchdog.metrics,
            async |listener, daemon| {
                let asked = Arc::new(MetricsService {
                    scrapes: Scrapes::new(Arc::clone(daemon)),
                    visitors,
                });
                server::serve(listener, asked, &daemon.watchdog().metrics).await
            },
        )
    }
}
