//! Counts established TCP connections.

use std::{
    io,
    net::{Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context as _, Result};
use socket2::{Domain, Socket, Type};

use crate::{counter::Counter, namespace::Namespace, tally::Tally};

/// More than the kernel allows, so that it uses its maximum.
const BACKLOG: i32 = 1 << 16;

/// Accepts TCP connections on one port, over IPv4 and IPv6, counts them as packets per source address, and
/// resets them.
#[derive(Debug)]
pub struct Listener {
    counter: Counter,
}

impl Listener {
    /// Starts to accept on a port of a namespace.
    pub fn new(namespace: &Namespace, port: u16) -> Result<Self> {
        let socket = namespace.enter(|| {
            Socket::new(Domain::IPV6, Type::STREAM, None).context("cannot make a TCP socket")
        })?;
        socket
            .set_only_v6(false)
            .context("cannot accept over IPv4 too")?;
        socket
            .bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())
            .and_then(|()| socket.listen(BACKLOG))
            .with_context(|| format!("cannot accept on TCP port {port}"))?;
        let counter = Counter::start(socket, accept)?;
        Ok(Self { counter })
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn so_far(&self) -> Tally {
        self.counter.so_far()
    }

    /// Returns the counts, after all connections are accepted.
    pub fn finish(self) -> Result<Tally> {
        self.counter.finish()
    }
}

fn accept(listener: &Socket) -> io::Result<(Option<std::net::IpAddr>, usize)> {
    let (connection, from) = listener.accept()?;
    // Reset on close, so that no connection lingers.
    connection.set_linger(Some(Duration::ZERO))?;
    Ok((from.as_socket().map(|from| from.ip().to_canonical()), 0))
}
