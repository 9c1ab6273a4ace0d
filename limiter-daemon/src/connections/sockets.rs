//! Counts the connections that have a socket in this process's network namespace.

use std::net::SocketAddr;

use limiter_common::connection::Ends;
use limiter_host::netlink::{
    Channel, DumpError,
    conntrack::Tuple,
    sockets::{dump_sockets, request},
};
use netlink_packet_sock_diag::{
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{InetResponse, SocketId, StateFlags, Timer},
};
use rtnetlink::sys::protocols::NETLINK_SOCK_DIAG;
use tokio::time::timeout;

use super::{
    CountSettings, cookie,
    scan::{CountError, PATIENCE, ScanState},
};
use crate::shared_datapath::SharedDatapath;

/// The states from established to closed; a socket in `TIME_WAIT` is no longer a connection.
const OPEN: StateFlags = StateFlags::ESTABLISHED
    .union(StateFlags::FIN_WAIT1)
    .union(StateFlags::FIN_WAIT2)
    .union(StateFlags::CLOSE_WAIT)
    .union(StateFlags::LAST_ACK)
    .union(StateFlags::CLOSING);

/// The open connections that have sockets, by socket cookie.
pub(super) struct OpenSockets {
    /// The addresses and ports of incoming packets.
    pub(super) tuples: Vec<(u64, Tuple)>,
    pub(super) ends: Vec<(u64, Ends)>,
}

/// The sockets, and the state between polls of them.
pub(super) struct Sockets {
    channel: Channel,
    known: ScanState,
}

impl Sockets {
    pub(super) fn new() -> Self {
        Self {
            channel: Channel::new(NETLINK_SOCK_DIAG),
            known: ScanState::default(),
        }
    }

    /// Forgets earlier polls, as another policy counts each connection anew.
    pub(super) fn begin_anew(&mut self) {
        self.known = ScanState::default();
    }

    /// Counts the open sockets, charges new handshakes if events do not report them, and takes off `counted`
    /// connections that are closed. Returns the open ones.
    pub(super) async fn scan(
        &mut self,
        datapath: &SharedDatapath,
        wanted: CountSettings,
        counted: Vec<u64>,
    ) -> Result<OpenSockets, CountError> {
        let tuples = match timeout(PATIENCE, open(&mut self.channel)).await {
            Ok(tuples) => tuples?,
            Err(_) => return Err(CountError::Late),
        };
        let ends = |(cookie, tuple): &(u64, Tuple)| Some((*cookie, cookie::ends(tuple)?));
        let ends: Vec<_> = tuples.iter().filter_map(ends).collect();
        if wanted.charges {
            self.known
                .charge(datapath, wanted.generation, &ends)
                .await?;
        }
        let are_reported = datapath.read().handshake_status().is_ok();
        let known = &mut self.known;
        known
            .settle(datapath, wanted.generation, counted, &ends, are_reported)
            .await?;
        Ok(OpenSockets { tuples, ends })
    }
}

/// Returns the open connections of this process's network namespace, by socket cookie.
async fn open(sockets: &mut Channel) -> Result<Vec<(u64, Tuple)>, DumpError> {
    let mut all = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let connection = |socket: InetResponse| {
            let header = socket.header;
            let id = header.socket_id;
            (header.timer != Some(Timer::TimeWait)).then(|| (cookie(&id), tuple(&id)))
        };
        let request = request(IPPROTO_TCP, family, OPEN);
        all.extend(dump_sockets(sockets, request, &[], connection).await?);
    }
    Ok(all)
}

/// Returns the cookie; the kernel sends its lower half first.
fn cookie(id: &SocketId) -> u64 {
    let halves = id.cookie.chunks_exact(4);
    let halves = halves.map(|half| half.try_into().map_or(0, u32::from_ne_bytes));
    halves
        .rev()
        .fold(0, |higher, half| higher << 32 | u64::from(half))
}

/// Returns the addresses and ports of incoming packets.
const fn tuple(id: &SocketId) -> Tuple {
    Tuple {
        source: SocketAddr::new(id.destination_address.to_canonical(), id.destination_port),
        destination: SocketAddr::new(id.source_address.to_canonical(), id.source_port),
    }
}
