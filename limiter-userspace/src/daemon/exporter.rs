//! What serves the metrics. The program that starts the daemon brings it along: metrics read the
//! daemon, and the daemon does not know them.

use std::{io, net::SocketAddr, sync::Arc};

use super::{shared::Daemon, worker::Worker};

/// Binds the port, before anything is attached.
pub type BindMetrics = fn(SocketAddr) -> io::Result<Box<dyn MetricsListener>>;

/// A port that is bound, but not served yet.
pub trait MetricsListener {
    /// Returns the address it listens on, with the real port where 0 was asked for.
    fn address(&self) -> SocketAddr;

    /// Serves what it reads from the daemon, on a thread of its own.
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker>;
}
