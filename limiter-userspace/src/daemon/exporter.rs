//! What serves over HTTP. The program that starts the daemon brings it along: it reads the daemon, and
//! the daemon does not know it.

use std::{io, net::SocketAddr, sync::Arc};

use limiter_policy::config::Place;

use super::{shared::Daemon, worker::Worker};

/// What listens, and where: with the real port where 0 was asked for.
pub type Placed<P> = (P, Box<dyn Listener>);

/// What was bound.
pub type Bound<P> = io::Result<Placed<P>>;

/// Binds ports and sockets, before anything is attached.
#[derive(Clone, Copy)]
pub struct Exporters {
    /// Binds the port of the metrics, for clients that ask for it by these names.
    pub metrics: fn(SocketAddr, hosts: &[String]) -> Bound<SocketAddr>,
    /// Binds the page's, for browsers that ask for it by these names; a socket for the members of a
    /// group.
    pub page: fn(&Place, hosts: &[String], group: Option<&str>) -> Bound<Place>,
}

/// A port or socket that is bound, but not served yet.
pub trait Listener {
    /// Serves what it reads from the daemon, on a thread of its own.
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker>;
}
