//! Automatic bans of sources that limits drop too often.
//!
//! The offenders are read only if the limits' counters have moved, off the thread that answers requests, and so
//! rarely that even a flood costs no more than a fiftieth of a CPU. [`limiter_reputation::automatic`] decides which
//! sources to ban.

mod apply;
mod event;
mod outcomes;
mod unproven;

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use limiter_common::{ban::BanKey, limit::LimitId};
use limiter_datapath::kernel::{DatapathError, monotonic_now};
use limiter_host::guard::ProtectedAddresses;
use limiter_reputation::automatic::{Decider, DueBans};
use tokio::task::{JoinError, spawn_blocking};
use tracing::{error, warn};

pub(super) use self::outcomes::{Outcome, Outcomes};
use self::{event::Lines, unproven::UnprovenCounts};
use super::{
    bans::SharedBans,
    guard::Guard,
    pace::{LONGEST_PAUSE, cpu_time, pause_after},
    shared_datapath::SharedDatapath,
};

/// Interval of checks for a limit that bans, while there is none.
const IDLE: Duration = Duration::from_secs(1);

/// Polls may take 1 / `CPU_DIVISOR` of a CPU.
const CPU_DIVISOR: u32 = 50;

/// The parts of the daemon that automatic bans need.
#[derive(Clone)]
pub(super) struct BanContext {
    pub(super) bans: Arc<SharedBans>,
    pub(super) guard: Arc<Guard>,
    pub(super) outcomes: Arc<Outcomes>,
}

/// Bans sources, forever.
pub(super) async fn watch(context: &BanContext) -> Infallible {
    let mut watcher = Watcher::default();
    loop {
        let pause = match watcher.round(context).await {
            Ok((next, pause)) => {
                watcher = next;
                pause
            }
            Err(error) => {
                error!("automatic banning has failed and starts over: {error}");
                watcher = Watcher::default();
                LONGEST_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// The state between polls.
#[derive(Default)]
struct Watcher {
    decider: Decider,
    /// The number of the policy that the decider uses.
    generation: Option<u64>,
    /// Each limit's dropped packets at the last poll.
    dropped: BTreeMap<LimitId, u64>,
    lines: Lines,
    unproven: UnprovenCounts,
}

impl Watcher {
    /// Polls once, and bans the sources that are due. Returns the pause until the next poll.
    async fn round(mut self, context: &BanContext) -> Result<(Self, Duration), JoinError> {
        if self.adopt(&context.bans.datapath) {
            let bans = Arc::clone(&context.bans);
            let lifted = spawn_blocking(move || apply::lift_never_banned(&bans));
            if let Err(error) = lifted.await? {
                warn!("cannot lift automatic bans that `never-ban` forbids: {error}");
            }
        }
        let Some(interval) = self.decider.interval() else {
            // From now on the guard has its descriptors and a status.
            context.guard.begin().await;
            return Ok((self, IDLE));
        };
        context.guard.refresh().await;
        let polling = context.clone();
        let (mut watcher, polled, poll_time) =
            spawn_blocking(move || timed(self, |watcher| watcher.poll(&polling))).await?;
        let due = match polled {
            Ok(due) => due,
            Err(error) => {
                warn!("cannot find the sources to ban: {error}");
                return Ok((watcher, LONGEST_PAUSE));
            }
        };
        let mut time = poll_time;
        if !due.offences.is_empty() {
            match context.guard.protected().await {
                Ok(protected) => {
                    let ban_time;
                    (watcher, ban_time) = watcher.ban(context, protected, due).await?;
                    time += ban_time;
                }
                // The guard's log and status have the reason.
                Err(_) => watcher.defer(&context.outcomes, &due),
            }
        }
        Ok((watcher, pause_after(time, CPU_DIVISOR, interval)))
    }

    /// Bans the sources that a poll found; also returns the CPU time it took.
    async fn ban(
        self,
        context: &BanContext,
        protected: ProtectedAddresses,
        due: DueBans,
    ) -> Result<(Self, Duration), JoinError> {
        let context = context.clone();
        let banning = move || {
            timed(self, |watcher| {
                let decider = &mut watcher.decider;
                apply::apply(&context, decider, &protected, &due.offences)
            })
        };
        let (mut watcher, banned, time) = spawn_blocking(banning).await?;
        match banned {
            Ok(events) => watcher.lines.log(monotonic_now(), &events),
            Err(error) => warn!("cannot ban: {error}"),
        }
        Ok((watcher, time))
    }

    /// Bans no source, because the guard does not know the protected addresses.
    fn defer(&mut self, outcomes: &Outcomes, due: &DueBans) {
        self.decider.defer();
        for offence in &due.offences {
            outcomes.add(offence.limit(), Outcome::Deferred, 1);
        }
    }

    /// Uses the policy in force; returns whether it is new.
    fn adopt(&mut self, datapath: &SharedDatapath) -> bool {
        let datapath = datapath.read();
        let manifest = datapath.manifest();
        let is_new = self.generation != Some(manifest.generation);
        if is_new {
            self.generation = Some(manifest.generation);
            self.decider.adopt(&manifest.policy, monotonic_now());
        }
        is_new
    }

    fn poll(&mut self, context: &BanContext) -> Result<DueBans, DatapathError> {
        let datapath = context.bans.datapath.read();
        // Read the clock and the counters before the offenders, so that the next poll sees later drops.
        let now_ns = monotonic_now();
        let limits = self.decider.limits();
        let dropped = limits
            .map(|limit| Ok((limit, datapath.limit_traffic(limit)?.dropped.packets)))
            .collect::<Result<BTreeMap<_, _>, DatapathError>>()?;
        if dropped == self.dropped && !self.decider.is_unfinished() {
            self.decider.nothing_new(now_ns);
            return Ok(DueBans::default());
        }
        self.dropped = dropped;
        let recorded = datapath.offenders()?;
        drop(datapath);
        let is_proven = |prefix: &BanKey| {
            let datapath = context.bans.datapath.read();
            let known = datapath.known_sources()?;
            let found = known.standing_of_prefix(prefix, &known.standing_context()?);
            Ok::<_, DatapathError>(found.is_proven)
        };
        let due = self.decider.decide(now_ns, recorded.offenders, is_proven)?;
        for (limit, delayed) in &due.delayed {
            context.outcomes.add(*limit, Outcome::Delayed, *delayed);
        }
        for (limit, number) in &due.unproven {
            context.outcomes.add(*limit, Outcome::NotProven, *number);
        }
        self.unproven.add(&due.unproven);
        if let Some(due) = self.unproven.due(now_ns) {
            unproven::log(&context.bans.datapath.read().manifest().policy, &due);
        }
        Ok(due)
    }
}

/// Runs `act` on this thread; also returns its CPU time.
fn timed<W, T>(mut watcher: W, act: impl FnOnce(&mut W) -> T) -> (W, T, Duration) {
    let begun = cpu_time();
    let done = act(&mut watcher);
    (watcher, done, cpu_time().saturating_sub(begun))
}
