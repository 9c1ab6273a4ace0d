//! Hears of TCP connections that are established, change their state or end.

use std::io;

use futures_util::FutureExt as _;
use rtnetlink::{
    packet_core::{NetlinkMessage, NetlinkPayload},
    sys::{
        AsyncSocket as _, AsyncSocketExt as _, SocketAddr, TokioSocket,
        protocols::NETLINK_NETFILTER,
    },
};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use socket2::SockRef;

use super::{filter::ASSURED_TCP, message::Message, tracked::Tracked};
use crate::netlink::next;

/// The groups `NFNLGRP_CONNTRACK_UPDATE` and `NFNLGRP_CONNTRACK_DESTROY`, as bits. A new connection has
/// been seen one way only, so its group would tell nothing but SYNs.
const GROUPS: u32 = 1 << 1 | 1 << 2;

/// How many bytes of events may wait in the kernel: a few thousand.
const WAITING: usize = 8 << 20;

/// More than an event has.
const LONGEST: usize = 8 << 10;

/// How many events are taken at once.
const AT_ONCE: usize = 512;

/// What was heard of a connection.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It is there.
    There(Tracked),
    /// It is there no longer.
    Gone(Tracked),
    /// Events were lost.
    Lost,
}

/// The kernel's events of this process's network namespace.
pub(crate) struct Events {
    socket: TokioSocket,
    buffer: Vec<u8>,
}

impl Events {
    /// Has the kernel send events.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_NETFILTER)?;
        let inner = socket.socket_mut();
        if set_socket_recv_buffer_size_force(&*inner, WAITING).is_err() {
            // Without the privilege to have more, what anybody may have.
            set_socket_recv_buffer_size(&*inner, WAITING)?;
        }
        SockRef::from(&*inner).attach_filter(&ASSURED_TCP)?;
        inner.bind(&SocketAddr::new(0, GROUPS))?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(LONGEST),
        })
    }

    /// Waits for the next event, and takes those that have come by then, but not all of very many.
    pub(crate) async fn next(&mut self) -> io::Result<Vec<Heard>> {
        let mut heard = Vec::new();
        self.receive(&mut heard).await?;
        while heard.len() < AT_ONCE {
            match self.receive(&mut heard).now_or_never() {
                Some(received) => received?,
                None => break,
            }
        }
        Ok(heard)
    }

    async fn receive(&mut self, heard: &mut Vec<Heard>) -> io::Result<()> {
        self.buffer.clear();
        match self.socket.recv_from(&mut self.buffer).await {
            // Not the kernel.
            Ok(from) if from.port_number() != 0 => Ok(()),
            Ok(_) => {
                read(&self.buffer, heard);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                heard.push(Heard::Lost);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads what the kernel sent at once.
fn read(mut bytes: &[u8], heard: &mut Vec<Heard>) {
    while !bytes.is_empty() {
        let message = next(bytes).and_then(|(message, rest)| {
            bytes = rest;
            Ok(NetlinkMessage::<Message>::deserialize(message)?)
        });
        match message.map(|message| message.payload) {
            Ok(NetlinkPayload::InnerMessage(Message::There(Some(tracked)))) => {
                heard.push(Heard::There(tracked));
            }
            Ok(NetlinkPayload::InnerMessage(Message::Gone(Some(tracked)))) => {
                heard.push(Heard::Gone(tracked));
            }
            Ok(_) => {}
            // As good as lost.
            Err(_) => {
                heard.push(Heard::Lost);
                return;
            }
        }
    }
}
