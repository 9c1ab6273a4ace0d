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
use crate::daemon::shared::Daemon;

/// The interval between polls.
const TICK: Duration = Duration::from_millis(200);

pub(super) struct LeaseNode {
    daemon: Arc<Daemon>,
    fleet: Arc<Fleet>,
    keys: Keys,
    /// The generation of the current policy; `None`: none yet.
    generation: Option<u64>,
    warnings: Warnings,
}

impl LeaseNode {
    pub(super) fn new(daemon: Arc<Daemon>, fleet: Arc<Fleet>) -> Self {
        Self {
            keys: Keys::new(fleet.settings.node.clone(), wall_clock_us()),
            daemon,
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
                _ = ticks.tick() => self.daemon.watchdog.leases.check_in(),
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
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
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
            connection.call(call);
        }
        self.fleet.report().shares = self.keys.status(monotonic_now());
    }

    /// Follows the policy in force. Call it before any change of a share under that policy.
    fn follow(&mut self, datapath: &Datapath) {
        let manifest = datapath.manifest();
        if self.generation != Some(manifest.generation) {
            self.generation = Some(manifest.generation);
            let names = manifest.settings.name_keys().fingerprint();
            let shares = datapath.shares();
            (self.keys).follow(shares, &manifest.policy.limits, names, wall_clock_us());
        }
    }

    fn receive(&mut self, (number, result): Answer) {
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        self.follow(&datapath);
        let error = match (result, datapath.shares()) {
            (Ok(reply), Some(shares)) => {
                let outcome = self.keys.receive(shares, number, &reply, wall_clock_us());
                refusal(&reply, outcome)
            }
            (Ok(_), None) => {
                self.keys.give_up(number);
                None
            }
            (Err(error), _) => {
                self.keys.give_up(number);
                Some(error)
            }
        };
        self.report(error);
    }

    /// Records whether this node has leases, and logs changes.
    fn report(&mut self, error: Option<String>) {
        let store = &self.fleet.settings.store;
        let mut report = self.fleet.report();
        match &error {
            None if report.leases_error.is_some() || !report.has_leases => {
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
        report.has_leases = error.is_none();
        report.leases_error = error;
    }
}

/// Returns why this node has no leases, or may soon have none.
fn refusal(reply: &Reply, outcome: Outcome) -> Option<String> {
    match (reply, outcome) {
        (_, Outcome::Over(Some(Refusal::Taken))) => {
            Some("another node has this node's name: each needs a `node` of its own".to_owned())
        }
        (_, Outcome::Over(Some(Refusal::Full))) => Some(
            "more nodes run than `nodes` in the section 'fleet' allows: raise it on all of them".to_owned(),
        ),
        (Reply::Renewed { has_rival: true, .. }, _) => Some(
            "another node uses this node's name, and has its minimum share: each needs a `node` of its own".to_owned(),
        ),
        _ => None,
    }
}

/// The time of day, in microseconds.
fn wall_clock_us() -> u64 {
    u64::try_from(wall_clock_now().as_microsecond()).unwrap_or_default()
}
