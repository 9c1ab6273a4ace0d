//! Prometheus metrics over HTTP, on a thread of their own. A client can do no more than keep that
//! thread busy: it serves a few connections for a short time each, and reads the counters at most
//! once a second.

mod capacity;
mod census;
mod collector;
mod connections;
mod format;
mod known_names;
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

use self::scrape::Scrapes;
use crate::{
    daemon::{self, Daemon, Worker},
    http::Port,
};

struct Listener(Port);

/// Binds the port.
pub fn bind(address: SocketAddr) -> daemon::Bound<SocketAddr> {
    let (address, port) = Port::bind(address)?;
    Ok((address, Box::new(Listener(port))))
}

impl daemon::Listener for Listener {
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker> {
        (self.0).serve(
            "metrics",
            daemon,
            |pulses| &pulses.metrics,
            async |listener, daemon| {
                let scrapes = Arc::new(Scrapes::new(Arc::clone(daemon)));
                server::serve(listener, scrapes, &daemon.pulses().metrics).await
            },
        )
    }
}
