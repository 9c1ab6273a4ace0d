//! TCP connections with one question each. The network stack itself retransmits lost segments.

use std::{
    collections::HashMap,
    io::{self, ErrorKind, Read as _, Write as _},
    mem,
    net::{IpAddr, SocketAddr},
    os::fd::AsRawFd as _,
};

use anyhow::{Context as _, Result};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use socket2::{Domain, Socket, Type};

/// A connection to be made.
pub(in crate::service) struct Attempt {
    pub(in crate::service) from: IpAddr,
    pub(in crate::service) to: SocketAddr,
    /// The bytes to send; if empty, the handshake is enough.
    pub(in crate::service) request: Vec<u8>,
    /// Whether the bytes received are a whole response.
    pub(in crate::service) is_response: fn(&[u8]) -> bool,
}

/// Connections in progress, by token.
#[derive(Default)]
pub(in crate::service) struct Connections(HashMap<u64, Connection>);

struct Connection {
    socket: Socket,
    attempt: Attempt,
    has_asked: bool,
    received: Vec<u8>,
}

impl Connections {
    /// Begins to connect.
    pub(in crate::service) fn open(
        &mut self,
        epoll: &Epoll,
        token: u64,
        attempt: Attempt,
    ) -> Result<()> {
        let socket = Socket::new(Domain::for_address(attempt.to), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        let from = SocketAddr::new(attempt.from, 0);
        socket
            .bind(&from.into())
            .with_context(|| format!("a client cannot use {from}"))?;
        match socket.connect(&attempt.to.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => {
                return Err(error).context("a client cannot connect");
            }
            _ => {}
        }
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        epoll.add(&socket, EpollEvent::new(flags, token))?;
        self.0.insert(
            token,
            Connection {
                socket,
                attempt,
                has_asked: false,
                received: Vec::new(),
            },
        );
        Ok(())
    }

    /// Returns the number of connections in progress.
    pub(in crate::service) fn len(&self) -> usize {
        self.0.len()
    }

    /// Advances a connection after an event. If it has its response, closes it and returns how often
    /// it was tried. A failed connection ends without a response.
    pub(in crate::service) fn advance(&mut self, token: u64) -> Option<usize> {
        let connection = self.0.get_mut(&token)?;
        match connection.advance() {
            Ok(false) => None,
            Ok(true) => {
                let tries = tries(&connection.socket).ok();
                self.0.remove(&token);
                tries
            }
            Err(_) => {
                self.0.remove(&token);
                None
            }
        }
    }
}

impl Connection {
    /// Returns whether the response is complete.
    fn advance(&mut self) -> io::Result<bool> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        if !self.has_asked {
            if self.socket.peer_addr().is_err() {
                return Ok(false);
            }
            self.has_asked = true;
            if self.attempt.request.is_empty() {
                return Ok(true);
            }
            // A new connection takes a short request at once.
            self.socket.write_all(&self.attempt.request)?;
        }
        let mut bytes = [0; 2048];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.received.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if (self.attempt.is_response)(&self.received) {
                return Ok(true);
            }
        }
    }
}

/// Returns 1 plus the number of retransmitted segments.
fn tries(socket: &Socket) -> io::Result<usize> {
    // SAFETY: the structure is made of numbers, for which 0 is a value.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&info)).unwrap_or_default();
    // SAFETY: both pointers are valid for the call, and the kernel writes at most `length` bytes.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(1 + usize::try_from(info.tcpi_total_retrans).unwrap_or(usize::MAX - 1))
}
