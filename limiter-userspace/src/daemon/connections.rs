//! Has the kernel count the connections that its network stack lists, in case nobody told of them:
//! those that were open before a policy that limits them, and those that closed while nobody was told.
//! It also has the queues swept in which clients wait.
//!
//! From each look it is known who has the most connections open.
//!
//! A look takes no longer than a twentieth of the time until the next one.

mod count;

use std::{
    collections::BTreeMap, collections::HashSet, convert::Infallible, iter::repeat_n, net::IpAddr,
    time::Duration,
};

use limiter_common::{
    address::Address,
    connection::{ConnectionOrder, Ends, queue::LOOKED_AT},
};
use limiter_datapath::kernel::{Datapath, DatapathError};
use netlink_packet_sock_diag::{
    constants::{AF_INET, AF_INET6, IPPROTO_TCP},
    inet::{InetResponse, SocketId, StateFlags, Timer},
};
use rtnetlink::sys::protocols::NETLINK_SOCK_DIAG;
use thiserror::Error;
use tokio::{
    task::yield_now,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use self::count::OwnerCount;
pub(super) use self::count::{Found, Owner, Owners};
use super::shared::Daemon;
use crate::{
    netlink::{
        Channel, DumpError,
        sockets::{ask, request},
    },
    protocol::ConnectionsStatus,
};

/// How often to see whether there is another policy.
const TICK: Duration = Duration::from_millis(100);

/// How often to look at least, if that is quick.
const INTERVAL: Duration = Duration::from_secs(1);

/// How much longer than the last look the pause is.
const SHARE: u32 = 20;

/// How long the kernel may take to list its connections.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many connections are counted by their owners before others have their turn.
const COUNTED_AT_ONCE: usize = 4096;

/// How many orders are given before others have their turn.
const AT_ONCE: usize = 512;

/// The states from established to closed; a socket that waits in `TIME_WAIT` is no connection.
const OPEN: StateFlags = StateFlags::ESTABLISHED
    .union(StateFlags::FIN_WAIT1)
    .union(StateFlags::FIN_WAIT2)
    .union(StateFlags::CLOSE_WAIT)
    .union(StateFlags::LAST_ACK)
    .union(StateFlags::CLOSING);

/// The connections were not counted.
#[derive(Debug, Error)]
enum Uncounted {
    #[error("the kernel does not list its connections: {0}")]
    Kernel(#[from] DumpError),
    #[error("the kernel has not listed its connections within {PATIENCE:?}")]
    Late,
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// What is known from earlier looks.
struct Looks {
    sockets: Channel,
    /// The number of the policy that they were for.
    generation: u64,
    /// The cookies of the connections that were counted by it, or are none of its business.
    settled: HashSet<u64>,
    /// The cookies of those that the last look did not find. One more has to miss them: the kernel may
    /// leave one out if others close while it lists them.
    missed: HashSet<u64>,
}

/// Looks again and again, while the policy limits connections.
pub(super) async fn keep(daemon: &Daemon) -> Infallible {
    let mut looks = Looks {
        sockets: Channel::new(NETLINK_SOCK_DIAG),
        generation: 0,
        settled: HashSet::new(),
        missed: HashSet::new(),
    };
    let mut next = Instant::now();
    let mut before = None;
    loop {
        let (is_needed, generation) = {
            let datapath = daemon.datapath();
            (
                datapath.counts_connections(),
                datapath.manifest().generation,
            )
        };
        let is_new = generation != looks.generation;
        if is_new {
            looks.generation = generation;
            looks.settled.clear();
        }
        if is_needed && (is_new || Instant::now() >= next) {
            let began = Instant::now();
            let error = looks
                .look(daemon)
                .await
                .err()
                .map(|error| error.to_string());
            next = Instant::now() + INTERVAL.max(began.elapsed() * SHARE);
            if error != before {
                if let Some(error) = &error {
                    warn!("connections are not counted anew: {error}");
                } else {
                    info!("connections are counted anew again");
                }
                before = error;
            }
        }
        sleep(TICK).await;
    }
}

impl Looks {
    /// Counts the connections that are open and not counted, and takes off those that are closed.
    async fn look(&mut self, daemon: &Daemon) -> Result<(), Uncounted> {
        // Before they are listed, so that what is counted meanwhile is not missed.
        let counted = counted(&daemon.datapath());
        let open = match timeout(PATIENCE, open(&mut self.sockets)).await {
            Ok(open) => open?,
            Err(_) => return Err(Uncounted::Late),
        };
        let found: HashSet<u64> = open.iter().map(|(cookie, _)| *cookie).collect();
        let new = open
            .iter()
            .filter(|(cookie, _)| !self.settled.contains(cookie));
        let new = new.map(|(cookie, ends)| ConnectionOrder::open(*cookie, *ends));
        let missing = counted.into_iter().filter(|cookie| !found.contains(cookie));
        let missing: HashSet<u64> = missing.collect();
        let closed = missing.intersection(&self.missed);
        let closed = closed.map(|cookie| ConnectionOrder::closed(*cookie));
        let sweeps = sweeps(&daemon.datapath())?;
        let orders: Vec<_> = new.chain(closed).chain(sweeps).collect();
        for orders in orders.chunks(AT_ONCE) {
            {
                let datapath = daemon.datapath();
                if datapath.manifest().generation != self.generation {
                    return Ok(());
                }
                datapath.recount(orders)?;
            }
            yield_now().await;
        }
        self.settled = found;
        self.missed = missing;
        self.count_by_owner(daemon, open.iter().map(|(_, ends)| ends))
            .await;
        Ok(())
    }

    /// Finds who has the most of the connections.
    async fn count_by_owner<'e>(&self, daemon: &Daemon, all: impl Iterator<Item = &'e Ends>) {
        let mut count = OwnerCount::new();
        let mut all = all.peekable();
        while all.peek().is_some() {
            {
                let datapath = daemon.datapath();
                if datapath.manifest().generation != self.generation {
                    return;
                }
                for ends in all.by_ref().take(COUNTED_AT_ONCE) {
                    count.add(ends, &datapath.places(ends));
                }
            }
            yield_now().await;
        }
        let found = count.found(self.generation, Instant::now().into_std());
        daemon.owners.set(found);
    }
}

/// Returns the orders to sweep the queues in which clients wait: as often as it may take to remove all
/// tickets that have expired.
fn sweeps(datapath: &Datapath) -> Result<Vec<ConnectionOrder>, DatapathError> {
    let Some(maps) = datapath.reputation() else {
        return Ok(Vec::new());
    };
    let queues = maps.connections().queues().all()?.into_iter();
    let orders = queues.flat_map(|(place, queue)| {
        let times = queue.tail.saturating_sub(queue.head) / LOOKED_AT + 1;
        let times = usize::try_from(times).unwrap_or(AT_ONCE).min(AT_ONCE);
        repeat_n(ConnectionOrder::sweep(place.0), times)
    });
    Ok(orders.collect())
}

/// Returns the cookies of the sockets of all counted connections.
fn counted(datapath: &Datapath) -> Vec<u64> {
    let maps = datapath.reputation();
    maps.map_or_else(Vec::new, |maps| maps.connections().counted())
}

/// Returns the open connections of this process's network namespace, by the cookies of their sockets.
async fn open(sockets: &mut Channel) -> Result<Vec<(u64, Ends)>, DumpError> {
    let mut all = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let connection = |socket: InetResponse| {
            let header = socket.header;
            let id = header.socket_id;
            (header.timer != Some(Timer::TimeWait)).then(|| (cookie(&id), ends(&id)))
        };
        let request = request(IPPROTO_TCP, family, OPEN);
        all.extend(ask(sockets, request, &[], connection).await?);
    }
    Ok(all)
}

/// Returns the cookie, of which the kernel sends the lower half first.
fn cookie(id: &SocketId) -> u64 {
    let halves = id.cookie.chunks_exact(4);
    let halves = halves.map(|half| half.try_into().map_or(0, u32::from_ne_bytes));
    halves
        .rev()
        .fold(0, |higher, half| higher << 32 | u64::from(half))
}

fn ends(id: &SocketId) -> Ends {
    let [peer, own] = [id.destination_address, id.source_address]
        .map(|address: IpAddr| Address::from(address.to_canonical()));
    Ends::new(&peer, id.destination_port, &own, id.source_port)
}

/// Returns what is counted; `None`: the policy limits no connections.
pub fn status(datapath: &Datapath) -> Result<Option<ConnectionsStatus>, DatapathError> {
    let Some(maps) = datapath
        .reputation()
        .filter(|_| datapath.counts_connections())
    else {
        return Ok(None);
    };
    let maps = maps.connections();
    Ok(Some(ConnectionsStatus {
        counted: maps.counted().len() as u64,
        uncounted: maps.uncounted()?,
        error: (datapath.are_handshakes_noted().err()).map(ToString::to_string),
    }))
}

/// Returns how many connections each limit on them counts, by its name.
pub fn open_by_limit(datapath: &Datapath) -> BTreeMap<String, u64> {
    let limits = &datapath.manifest().policy.limits;
    let Some(maps) = datapath
        .reputation()
        .filter(|_| datapath.counts_connections())
    else {
        return BTreeMap::new();
    };
    let counting = limits.iter().filter(|limit| limit.counts_connections());
    let open = maps.connections().open_by_limit();
    counting.map(|limit| limit.name.clone()).zip(open).collect()
}
