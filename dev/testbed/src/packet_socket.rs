//! Sockets that carry whole frames.

use anyhow::{Context as _, Result};
use nix::net::if_::if_nametoindex;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use crate::namespace::Namespace;

/// The traffic that a packet socket receives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Traffic {
    Everything,
    Nothing,
}

/// Opens a packet socket bound to an interface of a namespace.
pub(crate) fn open(namespace: &Namespace, interface: &str, traffic: Traffic) -> Result<Socket> {
    namespace.enter(|| {
        let index =
            if_nametoindex(interface).with_context(|| format!("no such interface: {interface}"))?;
        // Protocol 0 receives nothing; bind then selects the protocol and the interface.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))
            .context("cannot make a packet socket: it takes root (CAP_NET_RAW)")?;
        socket
            .bind(&address(index, traffic)?)
            .with_context(|| format!("cannot bind a packet socket to {interface}"))?;
        Ok(socket)
    })
}

fn address(index: u32, traffic: Traffic) -> Result<SockAddr> {
    let protocol = match traffic {
        Traffic::Everything => u16::try_from(libc::ETH_P_ALL)?.to_be(),
        Traffic::Nothing => 0,
    };
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is the address type of AF_PACKET, fits in the storage, and has no
    // invalid bit patterns.
    let link = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    link.sll_family = u16::try_from(libc::AF_PACKET)?;
    link.sll_protocol = protocol;
    link.sll_ifindex = i32::try_from(index)?;
    let length = u32::try_from(size_of::<libc::sockaddr_ll>())?;
    // SAFETY: the storage holds a sockaddr_ll, and the length is that of one.
    Ok(unsafe { SockAddr::new(storage, length) })
}
