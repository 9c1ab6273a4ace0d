//! Sends UDP datagrams.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result};
use nix::sys::socket::{
    setsockopt,
    sockopt::{Ipv4RecvErr, Ipv6RecvErr},
};
use socket2::{Domain, Socket, Type};

use crate::{
    load::{Load, Progress, SendReport},
    namespace::Namespace,
};

/// Sends UDP datagrams from one address of a namespace to one socket address.
#[derive(Debug)]
pub struct UdpSource {
    socket: Socket,
    destination: SocketAddr,
    progress: Progress,
}

impl UdpSource {
    /// Makes a source bound to an address of the namespace.
    pub fn new(namespace: &Namespace, source: IpAddr, destination: SocketAddr) -> Result<Self> {
        let socket = namespace.enter(|| {
            let domain = Domain::for_address(destination);
            Socket::new(domain, Type::DGRAM, None).context("cannot make a UDP socket")
        })?;
        // Without these options the kernel does not report that a full veth ring lost a datagram.
        match destination {
            SocketAddr::V4(_) => setsockopt(&socket, Ipv4RecvErr, &true),
            SocketAddr::V6(_) => setsockopt(&socket, Ipv6RecvErr, &true),
        }
        .context("cannot ask for errors of a UDP socket")?;
        socket
            .bind(&SocketAddr::from((source, 0)).into())
            .with_context(|| format!("cannot send from {source}"))?;
        Ok(Self {
            socket,
            destination,
            progress: Progress::default(),
        })
    }

    /// Returns a handle to follow and end [`UdpSource::send`] on another thread.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Sends datagrams with this many bytes of payload, at the load's rate.
    pub fn send(&self, load: Load, payload_length: usize) -> Result<SendReport> {
        let payload = vec![0; payload_length];
        let destination = self.destination.into();
        load.drive(&self.progress, |_| {
            self.socket.send_to(&payload, &destination).map(drop)
        })
        .with_context(|| format!("cannot send to {}", self.destination))
    }
}
