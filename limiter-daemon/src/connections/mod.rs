//! Keeps the kernel's count of connections correct. Events report most openings and closings; regular polls of the
//! lists of the network stack find connections opened before the policy limited them, and closings that were not
//! reported. If the policy says so, connection tracking is polled, too. Each poll also sweeps the queues in which
//! clients wait, and finds the keys with the most connections.
//!
//! A poll takes at most a twentieth of a CPU until the next one.

mod context;
mod cookie;
mod count;
mod scan;
mod sockets;
mod tracking;

use std::{collections::BTreeMap, convert::Infallible, iter::repeat_n, sync::Arc, time::Duration};

use limiter_common::connection::{ConnectionOrder, Ends, queue::CHECKED_TICKETS};
use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_policy::policy::CountedConnections;
use limiter_protocol::ConnectionsStatus;
use tokio::{
    task::{spawn_blocking, yield_now},
    time::{Instant, sleep},
};
use tracing::{info, warn};

pub(super) use self::{
    context::PollContext,
    count::{BusyKey, BusyKeys, KeySnapshot},
};
use self::{
    count::OpenByKey,
    scan::{AT_ONCE, CPU_DIVISOR, CountError, carry_out},
    sockets::Sockets,
    tracking::Tracking,
};
use super::pace::cpu_time;

/// Interval of checks for another policy.
const TICK: Duration = Duration::from_millis(100);

/// How long to receive events before checking whether another task is done.
const MOMENT: Duration = Duration::from_millis(2);

/// The least interval between polls.
const INTERVAL: Duration = Duration::from_secs(1);

/// Connections counted by key in one batch, after which other tasks have their turn.
const COUNTED_AT_ONCE: usize = 4096;

/// The settings for connections of the policy in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CountSettings {
    /// The number of the policy.
    generation: u64,
    /// Whether it limits connections.
    counts: bool,
    /// Whether it limits handshakes, and the kernel cannot report them by events.
    charges: bool,
    /// The connections that it counts.
    which: CountedConnections,
    /// The number of times that the names of open connections were written anew.
    renamed: u64,
}

impl CountSettings {
    fn of(datapath: &Datapath) -> Self {
        let manifest = datapath.manifest();
        Self {
            generation: manifest.generation,
            counts: datapath.counts_connections(),
            charges: datapath.limits_handshakes() && datapath.handshake_status().is_err(),
            which: manifest.policy.connections,
            renamed: 0,
        }
    }

    const fn renamed(self, renamed: u64) -> Self {
        Self { renamed, ..self }
    }

    fn are_tracked(self) -> bool {
        self.counts && self.which == CountedConnections::Tracked
    }
}

/// Polls the connections, while the policy limits them, or limits handshakes that are not reported by events.
pub(super) async fn maintain(context: PollContext<'_>) -> Infallible {
    let mut sockets = Sockets::new();
    let mut tracking = None;
    let mut wanted = CountSettings::default();
    let mut next = Instant::now();
    let mut before = None;
    loop {
        let renamed = context.datapath.naming.renamed();
        let found = CountSettings::of(&context.datapath.read()).renamed(renamed);
        if found != wanted {
            wanted = found;
            next = Instant::now();
            sockets.begin_anew();
            tracking = wanted.are_tracked().then(Tracking::new);
            if tracking.is_none() {
                context.forwarded.set(None);
            }
        }
        if (wanted.counts || wanted.charges) && Instant::now() >= next {
            // The first order of a policy has the kernel verify a program. It goes first, as no connection should
            // wait for that, and outside the measured cost, as later polls do not repeat it.
            let prepare = ConnectionOrder::closed(cookie::OF_NONE);
            let prepared = carry_out(context.datapath, wanted.generation, &[prepare]).await;
            let began = cpu_time();
            let (counted, counting) = count(context, wanted, tracking.as_mut()).await;
            let polled = scan(context, wanted, counted, &mut sockets, tracking.as_mut()).await;
            // This future never moves to another thread, so its CPU time is this thread's.
            let cost = cpu_time().saturating_sub(began) + counting;
            next = Instant::now() + INTERVAL.max(cost * CPU_DIVISOR);
            let error = prepared.and(polled).err();
            let error = error.map(|error| error.to_string());
            if error != before {
                if let Some(error) = &error {
                    warn!("connections are not counted anew: {error}");
                } else {
                    info!("connections are counted anew again");
                }
                before = error;
            }
        }
        match &mut tracking {
            Some(tracking) => {
                let are_lost = tracking.receive(context, wanted.generation, TICK).await;
                if are_lost {
                    next = next.min(Instant::now() + tracking.pause());
                }
            }
            None => sleep(TICK).await,
        }
    }
}

/// Returns the cookies of all counted connections, and the CPU time of reading them on another thread. The table is
/// long, so events are received meanwhile.
async fn count(
    context: PollContext<'_>,
    wanted: CountSettings,
    tracking: Option<&mut Tracking>,
) -> (Vec<u64>, Duration) {
    let datapath = Arc::clone(context.datapath);
    let counting = spawn_blocking(move || {
        let before = cpu_time();
        let counted = counted_cookies(&datapath.read());
        (counted, cpu_time().saturating_sub(before))
    });
    if let Some(tracking) = tracking {
        while !counting.is_finished() {
            tracking.receive(context, wanted.generation, MOMENT).await;
        }
    }
    // The task is lost only while the daemon ends.
    counting.await.unwrap_or_default()
}

/// Counts open connections, takes off connections `counted` before and closed by now, and sweeps the queues.
async fn scan(
    context: PollContext<'_>,
    wanted: CountSettings,
    counted: Vec<u64>,
    sockets: &mut Sockets,
    tracking: Option<&mut Tracking>,
) -> Result<(), CountError> {
    // Without tracking, connections tracked under an earlier policy are missing among the sockets, so they count as
    // closed.
    let are_tracked = |cookie: &u64| tracking.is_some() && cookie::is_tracked(*cookie);
    let (tracked, of_sockets): (Vec<_>, Vec<_>) = counted.into_iter().partition(are_tracked);
    let open = sockets.scan(context.datapath, wanted, of_sockets).await?;
    let tracked = match tracking {
        Some(tracking) => {
            let tuples = &open.tuples;
            tracking
                .scan(context, wanted.generation, tracked, tuples)
                .await
        }
        None => Vec::new(),
    };
    let all = open.ends.iter().chain(&tracked).map(|(_, ends)| ends);
    count_by_key(context, wanted.generation, all).await;
    let sweeps = sweeps(&context.datapath.read())?;
    carry_out(context.datapath, wanted.generation, &sweeps).await
}

/// Finds the keys with the most connections.
async fn count_by_key<'e>(
    context: PollContext<'_>,
    generation: u64,
    all: impl Iterator<Item = &'e Ends>,
) {
    let mut count = OpenByKey::new();
    let mut all = all.peekable();
    while all.peek().is_some() {
        {
            let datapath = context.datapath.read();
            if datapath.manifest().generation != generation {
                return;
            }
            for ends in all.by_ref().take(COUNTED_AT_ONCE) {
                count.add(ends, &datapath.count_ids(ends));
            }
        }
        yield_now().await;
    }
    let found = count.snapshot(generation, Instant::now().into_std());
    context.busy_keys.set(found);
}

/// Returns the orders to sweep the queues in which clients wait: as many as may be needed to remove all expired
/// tickets.
fn sweeps(datapath: &Datapath) -> Result<Vec<ConnectionOrder>, DatapathError> {
    let Some(maps) = datapath.source_maps() else {
        return Ok(Vec::new());
    };
    let queues = maps.connections().queues().all()?.into_iter();
    let orders = queues.flat_map(|(count_id, queue)| {
        let times = queue.tail.saturating_sub(queue.head) / CHECKED_TICKETS + 1;
        let times = usize::try_from(times).unwrap_or(AT_ONCE).min(AT_ONCE);
        repeat_n(ConnectionOrder::sweep(count_id.0), times)
    });
    Ok(orders.collect())
}

fn counted_cookies(datapath: &Datapath) -> Vec<u64> {
    let maps = datapath.source_maps();
    maps.map_or_else(Vec::new, |maps| maps.connections().counted())
}

/// Returns the number of counted connections; `None`: the policy limits no connections.
pub(super) fn status(datapath: &Datapath) -> Result<Option<ConnectionsStatus>, DatapathError> {
    let Some(maps) = datapath
        .source_maps()
        .filter(|_| datapath.counts_connections() || CountSettings::of(datapath).charges)
    else {
        return Ok(None);
    };
    let maps = maps.connections();
    let counted = maps.counted();
    let tracked = counted.iter().filter(|cookie| cookie::is_tracked(**cookie));
    let tracked = tracked.count() as u64;
    Ok(Some(ConnectionsStatus {
        counted: counted.len() as u64,
        tracked: CountSettings::of(datapath).are_tracked().then_some(tracked),
        uncounted: maps.uncounted()?,
        error: (datapath.handshake_status().err()).map(ToString::to_string),
    }))
}

/// Returns the number of open connections that each limit counts, by its name.
pub(super) fn open_by_limit(datapath: &Datapath) -> BTreeMap<String, u64> {
    let limits = &datapath.manifest().policy.limits;
    let counting = limits.iter().filter(|limit| limit.counts_connections());
    let names = counting.map(|limit| limit.name.clone());
    names.zip(datapath.open_by_limit()).collect()
}
