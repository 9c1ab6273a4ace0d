//! This node's loop: it polls packets' demand and calls the store's script, by the policy in force.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::Fuse};

use limiter_datapath::kernel::{Datapath, monotonic_now, wall_clock_now};
use limiter_fleet::lease::{Call, CallId, Reply};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::{
    super::{handle::Fleet, warnings::Warnings},
    connection::{Called, Connection},
    keys::Keys,
};
use crate::{shared_datapath::SharedDatapath, watchdog::ThreadWatchdog};

/// The interval between polls.
const TICK: Duration = Duration::from_millis(200);

pub(super) struct LeaseNode {
    datapath: Arc<SharedDatapath>,
    watchdog: Arc<ThreadWatchdog>,
    fleet: Arc<Fleet>,
    keys: Keys,
    /// The generation of the current policy; `None`: none yet.
    generation: Option<u64>,
    warnings: Warnings,
}

impl LeaseNode {
    pub(super) fn new(
        datapath: Arc<SharedDatapath>,
        watchdog: Arc<ThreadWatchdog>,
        fleet: Arc<Fleet>,
    ) -> Self {
        Self {
            keys: Keys::new(fleet.settings.node.clone(), wall_clock_us()),
            datapath,
            watchdog,
            fleet,
            generation: None,
            warnings: Warnings::default(),
        }
    }

    pub(super) async fn live(&mut self) {
        let fleet = Arc::clone(&self.fleet);
        let mut idle = Some(Connection::new(Arc::clone(&fleet)));
        let mut calling = pin!(Fuse::terminated());
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = fleet.leases_ending.notified() => return,
                _ = ticks.tick() => self.watchdog.leases.check_in(),
                called = &mut calling => {
                    let (connection, call, reply): Called = called;
                    idle = Some(connection);
                    self.receive(call, reply);
                }
            }
            // While a call is open, another waits: a slow store delays no poll.
            if let Some(call) = self.work(idle.is_some())
                && let Some(connection) = idle.take()
            {
                calling.set(connection.call(call).fuse());
            }
        }
    }

    /// Polls packets' demand; begins a call if there is news and it `may_call`.
    fn work(&mut self, may_call: bool) -> Option<Call> {
        let owner = Arc::clone(&self.datapath);
        let datapath = owner.read();
        self.follow(&datapath);
        let shares = datapath.shares()?;
        if self.keys.is_idle() {
            self.fleet.report().shares.clear();
            return None;
        }
        self.keys.poll(shares);
        let now_ns = monotonic_now();
        self.fleet.report().shares = self.keys.status(now_ns);
        may_call.then(|| self.keys.leases.call(now_ns)).flatten()
    }

    /// Follows the policy in force. Call it before any change of a share under that policy.
    fn follow(&mut self, datapath: &Datapath) {
        let manifest = datapath.manifest();
        if self.generation != Some(manifest.generation) {
            self.generation = Some(manifest.generation);
            (self.keys).follow(datapath.shares(), &manifest.policy.limits);
        }
    }

    fn receive(&mut self, call: CallId, reply: Result<Reply, String>) {
        let owner = Arc::clone(&self.datapath);
        let datapath = owner.read();
        self.follow(&datapath);
        let reply = match (reply, datapath.shares()) {
            (Ok(reply), Some(shares)) if self.keys.leases.awaits(call) => {
                self.keys.receive(shares, call, &reply);
                reply
            }
            (reply, _) => {
                self.keys.leases.give_up(call);
                if let Err(error) = reply {
                    self.report(None, Some(&error));
                }
                return;
            }
        };
        match reply {
            Reply::Renewed {
                nodes, has_rival, ..
            } => self.report(Some(nodes), has_rival.then_some(RIVAL)),
            Reply::Taken => self.report(None, Some(TAKEN)),
            Reply::Full => self.report(None, Some(FULL)),
            Reply::Old | Reply::Lost => {}
        }
    }

    /// Records how many nodes share limits, or why this one has no leases, and logs changes.
    fn report(&mut self, nodes: Option<u64>, error: Option<&str>) {
        let store = &self.fleet.settings.store;
        let mut report = self.fleet.report();
        match error {
            None if report.leases_error.is_some() || report.sharing_nodes.is_none() => {
                self.warnings.clear();
                info!("the fleet's limits are shared over its store {store}");
            }
            Some(why) if self.warnings.is_new(why) => warn!(
                why,
                "the fleet's limits are not shared over its store {store}: {why}; leases end within seconds, and \
                 each node has its minimum share"
            ),
            None | Some(_) => {}
        }
        report.sharing_nodes = nodes;
        report.leases_error = error.map(ToOwned::to_owned);
    }
}

const RIVAL: &str =
    "another node uses this node's name, and has its minimum share: each needs a `node` of its own";

const TAKEN: &str = "another node has this node's name: each needs a `node` of its own";

const FULL: &str =
    "more nodes run than `nodes` in the section 'fleet' allows: raise it on all of them";

/// The time of day, in microseconds.
fn wall_clock_us() -> u64 {
    u64::try_from(wall_clock_now().as_microsecond()).unwrap_or_default()
}
