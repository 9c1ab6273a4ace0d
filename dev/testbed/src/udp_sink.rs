//! Counts received UDP datagrams.

use std::{
    mem::MaybeUninit,
    net::{Ipv6Addr, SocketAddr},
};

use anyhow::{Context as _, Result};
use socket2::{Domain, Socket, Type};

use crate::{counter::Counter, namespace::Namespace, tally::Tally};

/// More than a datagram can hold.
const LONGEST: usize = 1 << 16;

/// Receives UDP on one port, over IPv4 and IPv6, and counts datagrams per source address.
#[derive(Debug)]
pub struct UdpSink {
    counter: Counter,
}

impl UdpSink {
    /// Starts to count datagrams on a port of a namespace.
    pub fn new(namespace: &Namespace, port: u16) -> Result<Self> {
        let socket = namespace.enter(|| {
            Socket::new(Domain::IPV6, Type::DGRAM, None).context("cannot make a UDP socket")
        })?;
        socket
            .set_only_v6(false)
            .context("cannot receive over IPv4 too")?;
        socket
            .bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())
            .with_context(|| format!("cannot receive on UDP port {port}"))?;
        let mut payload = vec![MaybeUninit::uninit(); LONGEST];
        let counter = Counter::start(socket, move |socket| {
            let (bytes, from) = socket.recv_from(&mut payload)?;
            let source = from.as_socket().map(|from| from.ip().to_canonical());
            Ok((source, bytes))
        })?;
        Ok(Self { counter })
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn so_far(&self) -> Tally {
        self.counter.so_far()
    }

    /// Returns the counts, after every arrived datagram is read.
    pub fn finish(self) -> Result<Tally> {
        self.counter.finish()
    }
}
