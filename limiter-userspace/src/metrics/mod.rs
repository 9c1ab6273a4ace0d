//! Prometheus metrics over HTTP, on a thread of their own. A client can do no more than keep that
//! thread busy: it serves a few connections for a short time each, and reads the counters at most
//! once a second.

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

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use tokio::sync::Notify;

use self::scrape::Scrapes;
use crate::daemon::{Daemon, MetricsListener, Worker};

/// A bound port that does not serve yet.
struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Binds the port.
pub fn bind(address: SocketAddr) -> io::Result<Box<dyn MetricsListener>> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok(Box::new(Listener { listener, address }))
}

impl MetricsListener for Listener {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(self.listener)?
        };
        let end = Arc::new(Notify::new());
        let ended = Arc::clone(&end);
        Worker::start(
            "metrics",
            move || {
                let scrapes = Arc::new(Scrapes::new(Arc::clone(&daemon)));
                let pulse = &daemon.pulses().metrics;
                runtime.block_on(async {
                    tokio::select! {
                        never = server::serve(listener, scrapes, pulse) => match never {},
                        () = ended.notified() => {}
                    }
                });
                pulse.end();
            },
            move || end.notify_one(),
        )
    }
}
