//! Packets that UDP sockets lost, by port.

use std::{collections::BTreeMap, fmt, io};

use limiter_policy::policy::PortRange;
use netlink_packet_sock_diag::{
    constants::{AF_INET, AF_INET6, IPPROTO_UDP},
    inet::{ExtensionFlags, InetRequest, InetResponse, StateFlags, nlas::Nla},
};
use rtnetlink::sys::protocols::NETLINK_SOCK_DIAG;
use tokio::runtime::{self, Runtime};

use crate::netlink::{
    Channel, DumpError,
    sockets::{dump_sockets, filter, request},
};

/// The most sockets of a family to read on a limit's ports. The kernel lists sockets of one port in a time that grows
/// with the square of their number.
const MOST: usize = 2_000;

/// `enum` of linux/inet_diag.h: the operations of a filter.
const JUMP: u8 = 1;
const LOCAL_PORT_AT_LEAST: u8 = 2;
const LOCAL_PORT_AT_MOST: u8 = 3;

/// The packets that each UDP socket has lost since it was opened, because its buffer was full, or the packet's
/// checksum was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketLosses {
    /// Each socket's local port and lost packets, by inode.
    sockets: BTreeMap<u32, (u16, u32)>,
}

impl SocketLosses {
    /// Returns whether a socket on one of `ports` has lost more than it had before.
    #[must_use]
    pub fn have_more_on(&self, ports: &[PortRange], before: &Self) -> bool {
        self.sockets.iter().any(|(inode, (port, lost))| {
            let had = before.sockets.get(inode).map_or(0, |(_, lost)| *lost);
            *lost > had && ports.iter().any(|range| range.contains(port))
        })
    }
}

/// Queries the kernel for UDP sockets, filtered by port. /proc/net/udp has them, too, but lists the sockets of all
/// ports, in a time that grows with the square of their number.
pub struct UdpSockets {
    channel: Channel,
    runtime: Runtime,
}

impl UdpSockets {
    /// Opens a netlink channel to the network namespace of this thread.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn open() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        let mut channel = Channel::new(NETLINK_SOCK_DIAG).with_most(MOST);
        {
            let _context = runtime.enter();
            channel.open()?;
        }
        Ok(Self { channel, runtime })
    }

    /// Reads the losses of each socket on one of `ports`.
    ///
    /// # Errors
    ///
    /// The kernel cannot say, or there are more than 2000 of a family.
    pub fn losses(&mut self, ports: &[PortRange]) -> Result<SocketLosses, DumpError> {
        let filter = filter(&on_any_of(ports));
        let mut sockets = BTreeMap::new();
        for family in [AF_INET, AF_INET6] {
            let request = InetRequest {
                extensions: ExtensionFlags::SKMEMINFO,
                ..request(IPPROTO_UDP, family, StateFlags::all())
            };
            let found = dump_sockets(&mut self.channel, request, &filter, lost);
            sockets.extend(self.runtime.block_on(found)?);
        }
        Ok(SocketLosses { sockets })
    }
}

impl fmt::Debug for UdpSockets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UdpSockets").finish_non_exhaustive()
    }
}

/// Returns a socket's inode, port and lost packets.
fn lost(socket: InetResponse) -> Option<(u32, (u16, u32))> {
    let memory = socket.nlas.iter().find_map(|attribute| match attribute {
        Nla::MemInfo(memory) => Some(memory),
        _ => None,
    })?;
    let header = socket.header;
    Some((header.inode, (header.socket_id.source_port, memory.drops)))
}

/// Returns the operations that let through sockets on any of `ports`.
fn on_any_of(ports: &[PortRange]) -> Vec<u8> {
    const OPERATION: u16 = 4;
    let operation = |code, yes: u8, no: u16| {
        let [low, high] = no.to_ne_bytes();
        [code, yes, low, high]
    };
    let port = |port| operation(0, 0, port);
    // Built from the end, where no range has matched.
    let mut all = operation(JUMP, 4, 2 * OPERATION).to_vec();
    for range in ports.iter().rev() {
        // Too many ranges make a filter that the kernel refuses.
        let rest = u16::try_from(all.len()).unwrap_or(u16::MAX);
        let to_end = rest.saturating_add(OPERATION);
        let this = [
            operation(LOCAL_PORT_AT_LEAST, 8, 5 * OPERATION),
            port(*range.start()),
            operation(LOCAL_PORT_AT_MOST, 8, 3 * OPERATION),
            port(*range.end()),
            operation(JUMP, 4, to_end),
        ];
        all.splice(..0, this.into_iter().flatten());
    }
    all
}

#[cfg(test)]
impl<const N: usize> From<[(u32, (u16, u32)); N]> for SocketLosses {
    /// Makes the losses of sockets by their inodes.
    fn from(sockets: [(u32, (u16, u32)); N]) -> Self {
        Self {
            sockets: BTreeMap::from(sockets),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn only_sockets_on_the_ports_count() {
        let losses = |ours, others| SocketLosses::from([(71, (53, ours)), (72, (4_000, others))]);
        let before = losses(5, 7);
        let ports = [50..=53, 9_000..=9_000];
        assert!(!losses(5, 7).have_more_on(&ports, &before));
        assert!(!losses(5, 8).have_more_on(&ports, &before));
        assert!(losses(6, 7).have_more_on(&ports, &before));
        assert!(losses(5, 8).have_more_on(&[4_000..=4_000], &before));
        // A socket that was opened since, and one that was closed.
        assert!(before.have_more_on(&ports, &SocketLosses::default()));
        assert!(!SocketLosses::default().have_more_on(&ports, &before));
    }

    /// The kernel lists exactly the sockets on the ports, with the losses of each.
    #[test]
    fn the_kernel_filters_by_port() {
        let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
        let quiet = UdpSocket::bind("[::1]:0").unwrap();
        for _ in 0..10_000 {
            deaf.send_to(&[0; 1000], deaf.local_addr().unwrap())
                .unwrap();
        }
        let mut kernel = UdpSockets::open().unwrap();
        let [deaf, quiet] = [&deaf, &quiet].map(|socket| socket.local_addr().unwrap().port());
        let mut shown = |ports: &[PortRange]| {
            let losses = kernel.losses(ports).unwrap();
            let mut shown: Vec<_> = losses.sockets.into_values().collect();
            shown.retain(|(port, _)| [deaf, quiet].contains(port));
            shown.sort_unstable_by_key(|(port, _)| *port == quiet);
            shown
        };
        let only_deaf = shown(&[deaf..=deaf]);
        assert!(matches!(only_deaf[..], [(port, 1..)] if port == deaf));
        assert_eq!(shown(&[1..=1, quiet..=quiet]), [(quiet, 0)]);
        let both = [deaf..=deaf, 1..=1, quiet..=quiet];
        assert_eq!(shown(&both), [only_deaf[0], (quiet, 0)]);
        assert_eq!(shown(&[0..=u16::MAX]).len(), 2);
        assert_eq!(shown(&[1..=1]), []);
    }
}
