//! The kinds of connections, each to a port of its own.

use std::{
    io::{ErrorKind, Write as _},
    net::{IpAddr, SocketAddr, TcpStream},
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::socket::{setsockopt, sockopt::TcpFastOpenConnect};
use socket2::{Domain, Protocol, Socket, Type};
use testbed::{Namespace, Pair};

use super::super::{PATIENCE, Server};
use crate::server_for;

/// A kind of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    Plain,
    /// With a byte in the SYN, once the client has a cookie.
    FastOpen,
    /// Multipath TCP, of one subflow or more.
    Multipath,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::FastOpen, Self::Multipath];

    pub(in super::super) const fn port(self) -> u16 {
        match self {
            Self::Plain => 7001,
            Self::FastOpen => 7002,
            Self::Multipath => 7003,
        }
    }

    fn protocol(self) -> Option<Protocol> {
        (self == Self::Multipath).then_some(Protocol::MPTCP)
    }

    /// Makes a server; `None`: the kernel does not know connections of the kind.
    pub(in super::super) fn serve(self, namespace: &Namespace) -> Result<Option<Server>> {
        match Server::at(namespace, self.port(), self.protocol()) {
            Err(error) if is_unknown(&error) => Ok(None),
            server => server.map(Some),
        }
    }

    /// Connects from an address.
    pub(in super::super) fn connect(self, pair: &Pair, from: &str) -> Result<TcpStream> {
        self.connect_at(pair, from, 0)
    }

    /// Connects from an address and a port; 0: any.
    pub(super) fn connect_at(self, pair: &Pair, from: &str, port: u16) -> Result<TcpStream> {
        let from: IpAddr = from.parse()?;
        let server = SocketAddr::new(server_for(from)?, self.port());
        pair.client.enter(|| {
            let socket = Socket::new(Domain::for_address(server), Type::STREAM, self.protocol())?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::new(from, port).into())?;
            if self != Self::FastOpen {
                socket.connect_timeout(&server.into(), PATIENCE)?;
                return Ok(socket.into());
            }
            setsockopt(&socket, TcpFastOpenConnect, &true)?;
            socket.connect(&server.into())?;
            let mut client = TcpStream::from(socket);
            // There may be no answer.
            client.set_nonblocking(true)?;
            match client.write(b"!") {
                Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
                written => ensure!(written.context("its first byte")? == 1),
            }
            client.set_nonblocking(false)?;
            Ok(client)
        })
    }
}

fn is_unknown(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| {
        error.kind() == ErrorKind::Unsupported
            || matches!(
                error.raw_os_error(),
                Some(libc::EPROTONOSUPPORT | libc::ENOPROTOOPT)
            )
    })
}
