//! What serves over HTTP. The program that starts the daemon brings it along: it reads the daemon, and
//! the daemon does not know it.

use std::{io, net::SocketAddr, sync::Arc};

use super::{shared::Daemon, worker::Worker};

/// A bound port, or why there is none.
pub type Bound = io::Result<Box<dyn Listener>>;

/// Binds ports, before anything is attached.
#[derive(Clone, Copy)]
pub struct Exporters {
    /// Binds that of the metrics.
    pub metrics: fn(SocketAddr) -> Bound,
    /// Binds that of the page, which browsers may also ask for by these names.
    pub page: fn(SocketAddr, &[String]) -> Bound,
}

/// A port that is bound, but not served yet.
pub trait Listener {
    /// Returns the address it listens on, with the real port where 0 was asked for.
    fn address(&self) -> SocketAddr;

    /// Serves what it reads from the daemon, on a thread of its own.
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker>;
}
