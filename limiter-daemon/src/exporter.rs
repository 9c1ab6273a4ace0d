//! The interface to the HTTP exporters. The program that starts the daemon passes them in: they read the daemon, and
//! the daemon does not depend on them.

use std::{io, net::SocketAddr, sync::Arc};

use limiter_policy::config::ListenAddress;

use super::{shared::Daemon, worker::Worker};

/// A listener and its address, with the real port where 0 was asked for.
pub type ListenerAt<P> = (P, Box<dyn Listener>);

/// The result of binding.
pub type BindResult<P> = io::Result<ListenerAt<P>>;

/// Binds ports and sockets, before any interface is attached.
#[derive(Clone, Copy)]
pub struct Exporters {
    /// Binds the port of the metrics, for clients that ask for it by these names.
    pub metrics: fn(SocketAddr, hosts: &[String]) -> BindResult<SocketAddr>,
    /// Binds the page's port, for browsers that ask for it by these names, or its socket, for the members of a group.
    pub page:
        fn(&ListenAddress, hosts: &[String], group: Option<&str>) -> BindResult<ListenAddress>,
}

/// A port or socket that is bound, but not served yet.
pub trait Listener {
    /// Serves the daemon's state, on a thread of its own.
    fn serve(self: Box<Self>, daemon: Arc<Daemon>) -> io::Result<Worker>;
}
