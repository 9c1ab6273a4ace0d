//! Who serves the metrics: whoever starts the daemon brings them along, since they read the daemon and it
//! does not know them.

use std::{io, net::SocketAddr, sync::Arc};

use super::shared::Daemon;

/// Takes the port, before anything is attached.
pub type BindMetrics = fn(SocketAddr) -> io::Result<Box<dyn MetricsListener>>;

/// The port is taken, nothing is served yet.
pub trait MetricsListener {
    /// Where it listens: the port is the real one where 0 was asked for.
    fn address(&self) -> SocketAddr;

    /// Serves what it reads of the daemon, until what it returns is dropped.
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Box<dyn Send>>;
}
