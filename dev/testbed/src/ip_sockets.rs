//! Shows the packets that the network stack delivers to sockets: whole packets, not only their number.

use std::{
    io::IoSliceMut,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::AsRawFd as _,
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::{
    errno::Errno,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout},
        socket::{
            ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt,
            sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo, RcvBufForce},
        },
    },
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::namespace::Namespace;

/// The buffer of each of some five hundred sockets. A test reads them after every few packets.
const RECEIVE_BUFFER: usize = 4 << 20;

/// More than a packet can hold.
const LONGEST: usize = 1 << 17;

/// The number of ready sockets to ask for at once.
const EVENTS: usize = 64;

/// The length of IPv4's header without options.
const IPV4_HEADER: usize = 20;

/// IPv6's next headers that the stack processes on its way to the payload: hop-by-hop options, routing,
/// fragment, destination options; and authentication, if it knows the sender's key. A raw socket for one of
/// these would get packets that the stack has not finished.
const READ_ON_THE_WAY: [u8; 5] = [0, 43, 44, 51, 60];

/// A packet that a socket received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The kind of socket.
    pub socket: SocketKind,
    /// The IP protocol number of the packet's payload.
    pub protocol: u8,
    /// The sender that the socket sees; an IPv4-mapped address as the IPv4 address.
    pub source: IpAddr,
    /// The destination of the packet as delivered.
    pub destination: IpAddr,
    /// The bytes after all network headers, and for UDP sockets after UDP's header.
    pub payload: Vec<u8>,
}

/// The kind of a receiving socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// A raw socket, with a copy of each packet of its protocol.
    Raw,
    /// The UDP socket, which IPv4 and IPv6 share.
    Udp,
}

/// Sockets for all packets that a namespace's network stack delivers over IP: a raw one for each protocol of
/// each family, and one for UDP.
#[derive(Debug)]
pub struct IpSockets {
    epoll: Epoll,
    sockets: Vec<OpenSocket>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct OpenSocket {
    socket: Socket,
    kind: SocketKind,
    protocol: u8,
    is_v4: bool,
}

impl IpSockets {
    /// Opens the sockets, the UDP socket on a port.
    pub fn new(namespace: &Namespace, udp_port: u16) -> Result<Self> {
        let sockets = namespace.enter(|| {
            let v4 = (1..=u8::MAX).map(|protocol| OpenSocket::raw(Domain::IPV4, protocol));
            let v6 = (1..=u8::MAX)
                .filter(|protocol| !READ_ON_THE_WAY.contains(protocol))
                .map(|protocol| OpenSocket::raw(Domain::IPV6, protocol));
            v4.chain(v6)
                .chain([OpenSocket::udp(udp_port)])
                .collect::<Result<Vec<_>>>()
        })?;
        let epoll = Epoll::new(EpollCreateFlags::empty()).context("cannot make an epoll")?;
        for (index, open) in (0..).zip(&sockets) {
            open.socket.set_nonblocking(true)?;
            setsockopt(&open.socket, RcvBufForce, &RECEIVE_BUFFER)
                .context("cannot enlarge a receive buffer")?;
            epoll
                .add(&open.socket, EpollEvent::new(EpollFlags::EPOLLIN, index))
                .context("cannot wait for a socket")?;
        }
        Ok(Self {
            epoll,
            sockets,
            buffer: vec![0; LONGEST],
        })
    }

    /// Returns all unread packets; waits at most `patience` for the first.
    pub fn read(&mut self, patience: Duration) -> Result<Vec<Delivery>> {
        let mut timeout = EpollTimeout::try_from(patience).context("the time is too long")?;
        let mut deliveries = Vec::new();
        loop {
            let mut events = [EpollEvent::empty(); EVENTS];
            let ready = match self.epoll.wait(&mut events, timeout) {
                Err(Errno::EINTR) => continue,
                ready => ready.context("cannot wait for sockets")?,
            };
            if ready == 0 {
                return Ok(deliveries);
            }
            for event in &events[..ready] {
                let open = &self.sockets[usize::try_from(event.data())?];
                while let Some(delivery) = open.read(&mut self.buffer)? {
                    deliveries.push(delivery);
                }
            }
            timeout = EpollTimeout::ZERO;
        }
    }
}

impl OpenSocket {
    fn raw(domain: Domain, protocol: u8) -> Result<Self> {
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(i32::from(protocol))))
            .context("cannot make a raw socket: it takes root (CAP_NET_RAW)")?;
        if domain == Domain::IPV6 {
            setsockopt(&socket, Ipv6RecvPacketInfo, &true).context("cannot ask for addresses")?;
        }
        Ok(Self {
            socket,
            kind: SocketKind::Raw,
            protocol,
            is_v4: domain == Domain::IPV4,
        })
    }

    fn udp(port: u16) -> Result<Self> {
        let socket =
            Socket::new(Domain::IPV6, Type::DGRAM, None).context("cannot make a UDP socket")?;
        socket
            .set_only_v6(false)
            .context("cannot receive over IPv4 too")?;
        setsockopt(&socket, Ipv4PacketInfo, &true).context("cannot ask for addresses")?;
        setsockopt(&socket, Ipv6RecvPacketInfo, &true).context("cannot ask for addresses")?;
        socket
            .bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())
            .with_context(|| format!("cannot receive on UDP port {port}"))?;
        Ok(Self {
            socket,
            kind: SocketKind::Udp,
            protocol: 17,
            is_v4: false,
        })
    }

    /// Returns the next packet, if there is one.
    fn read(&self, buffer: &mut [u8]) -> Result<Option<Delivery>> {
        let mut control = nix::cmsg_space!(libc::in6_pktinfo, libc::in_pktinfo);
        let mut pieces = [IoSliceMut::new(buffer)];
        let message = match recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut pieces,
            Some(&mut control),
            MsgFlags::empty(),
        ) {
            Err(Errno::EAGAIN) => return Ok(None),
            message => message.context("cannot receive")?,
        };
        let source = message.address.and_then(address).context("no sender")?;
        let destination = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(IpAddr::from(info.ipi_addr.s_addr.to_ne_bytes()))
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                Some(IpAddr::from(info.ipi6_addr.s6_addr).to_canonical())
            }
            _ => None,
        });
        let bytes = message.bytes;
        let received = &buffer[..bytes];
        let (destination, payload) = if self.is_v4 {
            let (destination, payload) = split_ipv4(received).context("no IPv4 packet")?;
            (IpAddr::from(destination), payload)
        } else {
            (destination.context("no receiver")?, received)
        };
        Ok(Some(Delivery {
            socket: self.kind,
            protocol: self.protocol,
            source,
            destination,
            payload: payload.to_vec(),
        }))
    }
}

fn address(address: SockaddrStorage) -> Option<IpAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(v4.ip().into());
    }
    Some(IpAddr::from(address.as_sockaddr_in6()?.ip()).to_canonical())
}

/// Splits an IPv4 packet into its destination and its payload.
fn split_ipv4(packet: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let header = packet.first_chunk::<IPV4_HEADER>()?;
    let destination = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    let payload = packet.get(usize::from(header[0] & 0x0f) * 4..)?;
    Some((destination, payload))
}
