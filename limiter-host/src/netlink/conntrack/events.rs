//! Receives events of TCP connections: established, changed state, ended. The kernel multicasts them to a
//! netlink socket; a filter on the socket drops the rest.

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

use super::{filter::ASSURED_TCP, message::Message, tracked::TrackedConnection};
use crate::netlink::next;

/// The groups `NFNLGRP_CONNTRACK_UPDATE` and `NFNLGRP_CONNTRACK_DESTROY`, as bits. The group of new connections
/// would report only SYNs, since a new connection was seen one way only.
const GROUPS: u32 = 1 << 1 | 1 << 2;

/// The socket's receive buffer, in bytes: room for a few thousand events.
const WAITING: usize = 8 << 20;

/// More bytes than an event has.
const LONGEST: usize = 8 << 10;

/// The most events taken per call.
const AT_ONCE: usize = 512;

/// A change of a tracked connection.
#[derive(Debug)]
pub enum ConntrackEvent {
    /// The connection exists.
    There(TrackedConnection),
    /// The connection ended.
    Gone(TrackedConnection),
    /// Events were lost.
    Lost,
}

/// A socket for the kernel's events in this process's network namespace.
pub struct Events {
    socket: TokioSocket,
    buffer: Vec<u8>,
}

impl Events {
    /// Subscribes to events.
    pub fn open() -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_NETFILTER)?;
        let inner = socket.socket_mut();
        if set_socket_recv_buffer_size_force(&*inner, WAITING).is_err() {
            // Without the privilege to exceed `rmem_max`, as much as it allows.
            set_socket_recv_buffer_size(&*inner, WAITING)?;
        }
        SockRef::from(&*inner).attach_filter(&ASSURED_TCP)?;
        inner.bind(&SocketAddr::new(0, GROUPS))?;
        Ok(Self {
            socket,
            buffer: Vec::with_capacity(LONGEST),
        })
    }

    /// Waits for the next event, then takes waiting events too, up to [`AT_ONCE`] and the rest of the last
    /// datagram.
    pub async fn next(&mut self) -> io::Result<Vec<ConntrackEvent>> {
        let mut events = Vec::new();
        self.receive(&mut events).await?;
        while events.len() < AT_ONCE {
            match self.receive(&mut events).now_or_never() {
                Some(received) => received?,
                None => break,
            }
        }
        Ok(events)
    }

    async fn receive(&mut self, events: &mut Vec<ConntrackEvent>) -> io::Result<()> {
        self.buffer.clear();
        match self.socket.recv_from(&mut self.buffer).await {
            // Another process sent it, not the kernel.
            Ok(from) if from.port_number() != 0 => Ok(()),
            Ok(_) => {
                read(&self.buffer, events);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                events.push(ConntrackEvent::Lost);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Reads the messages of one datagram.
fn read(mut bytes: &[u8], events: &mut Vec<ConntrackEvent>) {
    while !bytes.is_empty() {
        let message = next(bytes).and_then(|(message, rest)| {
            bytes = rest;
            Ok(NetlinkMessage::<Message>::deserialize(message)?)
        });
        match message.map(|message| message.payload) {
            Ok(NetlinkPayload::InnerMessage(Message::There(Some(tracked)))) => {
                events.push(ConntrackEvent::There(tracked));
            }
            Ok(NetlinkPayload::InnerMessage(Message::Gone(Some(tracked)))) => {
                events.push(ConntrackEvent::Gone(tracked));
            }
            Ok(_) => {}
            // A message that cannot be decoded counts as a lost one.
            Err(_) => {
                events.push(ConntrackEvent::Lost);
                return;
            }
        }
    }
}
