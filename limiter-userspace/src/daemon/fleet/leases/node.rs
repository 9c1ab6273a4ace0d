//! This node's loop: it polls packets' demand and calls the store's script, by the policy in force.

use std::{sync::Arc, time::Duration};

use limiter_datapath::kernel::{Datapath, monotonic_now, wall_clock_now};
use limiter_fleet::lease::{Outcome, Refusal, Reply};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::{
    super::{handle::Fleet, warnings::Warnings},
    connection::{Answer, Connection},
    keys::Keys,
};
use crate::daemon::{shared_datapath::SharedDatapath, watchdog::ThreadWatchdog};

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
        let mut connection = Connection::start(Arc::clone(&fleet));
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = fleet.leases_ending.notified() => return,
                _ = ticks.tick() => self.watchdog.leases.check_in(),
                answer = connection.answers.recv() => match answer {
                    Some(answer) => self.receive(answer),
                    None => return,
                },
            }
            self.work(&connection);
        }
    }

    /// Polls packets' demand, and calls if there is news.
    fn work(&mut self, connection: &Connection) {
        let owner = Arc::clone(&self.datapath);
        let datapath = owner.read();
        self.follow(&datapath);
        let Some(shares) = datapath.shares() else {
            return;
        };
        if self.keys.is_idle() {
            self.fleet.report().shares.clear();
            return;
        }
        self.keys.poll(shares, wall_clock_us());
        if let Some(call) = self.keys.call(monotonic_now()) {
            let id = call.0;
            if !connection.call(call) {
                self.keys.give_up(id);
            }
        }
        self.fleet.report().shares = self.keys.status(monotonic_now());
    }

    /// Follows the policy in force. Call it before any change of a share under that policy.
    fn follow(&mut self, datapath: &Datapath) {
        let manifest = datapath.manifest();
        if self.generation != Some(manifest.generation) {
            self.generation = Some(manifest.generation);
            let shares = datapath.shares();
            (self.keys).follow(shares, &manifest.policy.limits, wall_clock_us());
        }
    }

    fn receive(&mut self, (call, result): Answer) {
        let owner = Arc::clone(&self.datapath);
        let datapath = owner.read();
        self.follow(&datapath);
        let Some(shares) = datapath.shares() else {
            return self.keys.give_up(call);
        };
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => {
                self.keys.give_up(call);
                return self.report(None, Some(error));
            }
        };
        match self.keys.receive(shares, call, &reply, wall_clock_us()) {
            Outcome::Renewed { .. } => match reply {
                Reply::Renewed {
                    nodes, has_rival, ..
                } => {
                    self.report(Some(nodes), has_rival.then(|| RIVAL.to_owned()));
                }
                Reply::Old | Reply::Taken | Reply::Full | Reply::Lost => {}
            },
            Outcome::Over(Some(refusal)) => self.report(None, Some(reason(refusal).to_owned())),
            Outcome::Over(None) | Outcome::Unchanged | Outcome::Report => {}
        }
    }

    /// Records how many nodes share limits, or why this one has no leases, and logs changes.
    fn report(&mut self, nodes: Option<u64>, error: Option<String>) {
        let store = &self.fleet.settings.store;
        let mut report = self.fleet.report();
        match &error {
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
        (report.sharing_nodes, report.leases_error) = (nodes, error);
    }
}

const RIVAL: &str =
    "another node uses this node's name, and has its minimum share: each needs a `node` of its own";

const fn reason(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Taken => "another node has this node's name: each needs a `node` of its own",
        Refusal::Full => {
            "more nodes run than `nodes` in the section 'fleet' allows: raise it on all of them"
        }
    }
}

/// The time of day, in microseconds.
fn wall_clock_us() -> u64 {
    u64::try_from(wall_clock_now().as_microsecond()).unwrap_or_default()
}
