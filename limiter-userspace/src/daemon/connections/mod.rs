//! Has the kernel count the connections that its network stack lists, in case nobody told of them:
//! those that were open before a policy that limits them, and those that closed while nobody was told.
//! If the policy says so, also those that its connection tracking knows. It also has the queues swept in
//! which clients wait.
//!
//! From each look it is known who has the most connections open.
//!
//! A look takes no more of a CPU than a twentieth of the time until the next one.

mod cookie;
mod count;
mod look;
mod sockets;
mod tracking;

use std::{collections::BTreeMap, convert::Infallible, iter::repeat_n, sync::Arc, time::Duration};

use limiter_common::connection::{ConnectionOrder, Ends, queue::LOOKED_AT};
use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_policy::policy::CountedConnections;
use tokio::{
    task::{spawn_blocking, yield_now},
    time::{Instant, sleep},
};
use tracing::{info, warn};

pub(super) use self::count::{Found, Owner, Owners};
use self::{
    count::OwnerCount,
    look::{AT_ONCE, SHARE, Uncounted, carry_out},
    sockets::Sockets,
    tracking::Tracking,
};
use super::{pace::cpu_time, shared::Daemon};
use crate::protocol::ConnectionsStatus;

/// How often to see whether there is another policy.
const TICK: Duration = Duration::from_millis(100);

/// How long to hear of connections before seeing whether something else is done.
const MOMENT: Duration = Duration::from_millis(2);

/// How often to look at least, if that is quick.
const INTERVAL: Duration = Duration::from_secs(1);

/// How many connections are counted by their owners before others have their turn.
const COUNTED_AT_ONCE: usize = 4096;

/// What the policy in force says of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// The number of the policy.
    generation: u64,
    /// Whether it limits connections.
    counts: bool,
    /// Whether it limits handshakes, and nobody tells of them.
    charges: bool,
    /// Which it counts.
    which: CountedConnections,
    /// How often their names were written down anew.
    renamed: u64,
}

impl Wanted {
    fn of(datapath: &Datapath) -> Self {
        let manifest = datapath.manifest();
        Self {
            generation: manifest.generation,
            counts: datapath.counts_connections(),
            charges: datapath.limits_handshakes() && datapath.are_handshakes_noted().is_err(),
            which: manifest.policy.connections,
            renamed: 0,
        }
    }

    /// Returns the same where names were written down that often.
    const fn renamed(self, renamed: u64) -> Self {
        Self { renamed, ..self }
    }

    fn are_tracked(self) -> bool {
        self.counts && self.which == CountedConnections::Tracked
    }
}

/// Looks again and again, while the policy limits connections, or handshakes of which nobody tells.
pub(super) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    let mut sockets = Sockets::new();
    let mut tracking = None;
    let mut wanted = Wanted::default();
    let mut next = Instant::now();
    let mut before = None;
    loop {
        let found = Wanted::of(&daemon.datapath()).renamed(daemon.naming.renamed());
        if found != wanted {
            wanted = found;
            next = Instant::now();
            sockets.begin_anew();
            tracking = wanted.are_tracked().then(Tracking::new);
            if tracking.is_none() {
                daemon.forwarded.set(None);
            }
        }
        if (wanted.counts || wanted.charges) && Instant::now() >= next {
            // The first order of a policy has the kernel verify a program: no connection should wait for that,
            // and it says nothing of the next look's cost.
            let prepare = ConnectionOrder::closed(cookie::OF_NONE);
            let prepared = carry_out(daemon, wanted.generation, &[prepare]).await;
            let began = cpu_time();
            let (counted, counting) = count(daemon, wanted, tracking.as_mut()).await;
            let looked = look(daemon, wanted, counted, &mut sockets, tracking.as_mut()).await;
            // This future has one thread.
            let cost = cpu_time().saturating_sub(began) + counting;
            next = Instant::now() + INTERVAL.max(cost * SHARE);
            let error = prepared.and(looked).err();
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
                let are_lost = tracking.hear(daemon, wanted.generation, TICK).await;
                if are_lost {
                    next = next.min(Instant::now() + tracking.pause());
                }
            }
            None => sleep(TICK).await,
        }
    }
}

/// Returns the cookies of all counted connections, and the CPU time of that beside this thread's. The
/// table is long, so meanwhile events are heard.
async fn count(
    daemon: &Arc<Daemon>,
    wanted: Wanted,
    tracking: Option<&mut Tracking>,
) -> (Vec<u64>, Duration) {
    let shared = Arc::clone(daemon);
    let counting = spawn_blocking(move || {
        let before = cpu_time();
        let counted = counted(&shared.datapath());
        (counted, cpu_time().saturating_sub(before))
    });
    if let Some(tracking) = tracking {
        while !counting.is_finished() {
            tracking.hear(daemon, wanted.generation, MOMENT).await;
        }
    }
    // It is only lost as the daemon ends.
    counting.await.unwrap_or_default()
}

/// Counts what is open and not counted, takes off what was `counted` before and is closed, and has the
/// queues swept.
async fn look(
    daemon: &Daemon,
    wanted: Wanted,
    counted: Vec<u64>,
    sockets: &mut Sockets,
    tracking: Option<&mut Tracking>,
) -> Result<(), Uncounted> {
    // Those tracked by an earlier policy are none of the sockets, and so are closed.
    let are_tracked = |cookie: &u64| tracking.is_some() && cookie::is_tracked(*cookie);
    let (tracked, of_sockets): (Vec<_>, Vec<_>) = counted.into_iter().partition(are_tracked);
    let open = sockets.look(daemon, wanted, of_sockets).await?;
    let tracked = match tracking {
        Some(tracking) => {
            let tuples = &open.tuples;
            tracking
                .look(daemon, wanted.generation, tracked, tuples)
                .await
        }
        None => Vec::new(),
    };
    let all = open.ends.iter().chain(&tracked).map(|(_, ends)| ends);
    count_by_owner(daemon, wanted.generation, all).await;
    let sweeps = sweeps(&daemon.datapath())?;
    carry_out(daemon, wanted.generation, &sweeps).await
}

/// Finds who has the most of the connections.
async fn count_by_owner<'e>(daemon: &Daemon, generation: u64, all: impl Iterator<Item = &'e Ends>) {
    let mut count = OwnerCount::new();
    let mut all = all.peekable();
    while all.peek().is_some() {
        {
            let datapath = daemon.datapath();
            if datapath.manifest().generation != generation {
                return;
            }
            for ends in all.by_ref().take(COUNTED_AT_ONCE) {
                count.add(ends, &datapath.places(ends));
            }
        }
        yield_now().await;
    }
    let found = count.found(generation, Instant::now().into_std());
    daemon.owners.set(found);
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

/// Returns the cookies of all counted connections.
fn counted(datapath: &Datapath) -> Vec<u64> {
    let maps = datapath.reputation();
    maps.map_or_else(Vec::new, |maps| maps.connections().counted())
}

/// Returns what is counted; `None`: the policy limits no connections.
pub fn status(datapath: &Datapath) -> Result<Option<ConnectionsStatus>, DatapathError> {
    let Some(maps) = datapath
        .reputation()
        .filter(|_| datapath.counts_connections() || Wanted::of(datapath).charges)
    else {
        return Ok(None);
    };
    let maps = maps.connections();
    let counted = maps.counted();
    let tracked = counted.iter().filter(|cookie| cookie::is_tracked(**cookie));
    let tracked = tracked.count() as u64;
    Ok(Some(ConnectionsStatus {
        counted: counted.len() as u64,
        tracked: Wanted::of(datapath).are_tracked().then_some(tracked),
        uncounted: maps.uncounted()?,
        error: (datapath.are_handshakes_noted().err()).map(ToString::to_string),
    }))
}

/// Returns how many connections each limit on them counts, by its name.
pub fn open_by_limit(datapath: &Datapath) -> BTreeMap<String, u64> {
    let limits = &datapath.manifest().policy.limits;
    let counting = limits.iter().filter(|limit| limit.counts_connections());
    let names = counting.map(|limit| limit.name.clone());
    names.zip(datapath.open_by_limit()).collect()
}
