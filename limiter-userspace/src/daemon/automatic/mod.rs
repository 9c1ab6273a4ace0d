//! Automatic bans: looks at the offenders, and bans those that were dropped too often.
//!
//! The limits' counters tell whether anything was dropped. Only then are the offenders read, off
//! the thread that answers, and so seldom that even a flood costs no more than a fiftieth of a CPU.
//! [`crate::reputation::automatic`] decides whom to ban.

mod apply;
mod event;
mod outcomes;
mod unproven;

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use limiter_common::{ban::BanKey, limit::LimitId};
use limiter_datapath::kernel::{DatapathError, monotonic_now};
use tokio::task::{JoinError, spawn_blocking};
use tracing::{error, warn};

pub use self::outcomes::{Outcome, Outcomes};
use self::{event::Lines, unproven::Unproven};
use super::{
    pace::{LONGEST_PAUSE, cpu_time, pause_after},
    shared::Daemon,
};
use crate::{
    guard::Protected,
    reputation::automatic::{Decider, DueBans},
};

/// How often to check whether a limit bans.
const IDLE: Duration = Duration::from_secs(1);

/// The share of a CPU: one part in so many.
const SHARE: u32 = 50;

/// Bans, forever.
pub(super) async fn watch(daemon: &Arc<Daemon>) -> Infallible {
    let mut watcher = Watcher::default();
    loop {
        let pause = match watcher.round(daemon).await {
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

/// The state kept from one look to the next.
#[derive(Default)]
struct Watcher {
    decider: Decider,
    /// The policy that the decider uses.
    generation: Option<u64>,
    /// Each limit's drops.
    dropped: BTreeMap<LimitId, u64>,
    lines: Lines,
    unproven: Unproven,
}

impl Watcher {
    /// Looks once, and bans whom it finds. Returns how long to wait.
    async fn round(mut self, daemon: &Arc<Daemon>) -> Result<(Self, Duration), JoinError> {
        if self.adopt(daemon) {
            let daemon = Arc::clone(daemon);
            let lifted = spawn_blocking(move || apply::lift_never_banned(&daemon));
            if let Err(error) = lifted.await? {
                warn!("cannot lift automatic bans that `never-ban` forbids: {error}");
            }
        }
        let Some(interval) = self.decider.interval() else {
            // From now on the guard has its descriptors, and its status is known.
            daemon.guard.begin().await;
            return Ok((self, IDLE));
        };
        daemon.guard.refresh().await;
        let looking = Arc::clone(daemon);
        let (mut watcher, looked, look_time) =
            spawn_blocking(move || timed(self, |watcher| watcher.look(&looking))).await?;
        let look = match looked {
            Ok(look) => look,
            Err(error) => {
                warn!("cannot find the sources to ban: {error}");
                return Ok((watcher, LONGEST_PAUSE));
            }
        };
        let mut time = look_time;
        if !look.offences.is_empty() {
            match daemon.guard.protected().await {
                Ok(protected) => {
                    let ban_time;
                    (watcher, ban_time) = watcher.ban(daemon, protected, look).await?;
                    time += ban_time;
                }
                // The log and the status say why.
                Err(_) => watcher.hold_back(daemon, &look),
            }
        }
        Ok((watcher, pause_after(time, SHARE, interval)))
    }

    /// Bans whom a look found; also returns the CPU time it took.
    async fn ban(
        self,
        daemon: &Arc<Daemon>,
        protected: Protected,
        look: DueBans,
    ) -> Result<(Self, Duration), JoinError> {
        let daemon = Arc::clone(daemon);
        let banning = move || {
            timed(self, |watcher| {
                let decider = &mut watcher.decider;
                apply::apply(&daemon, decider, &protected, &look.offences)
            })
        };
        let (mut watcher, banned, time) = spawn_blocking(banning).await?;
        match banned {
            Ok(events) => watcher.lines.log(monotonic_now(), &events),
            Err(error) => warn!("cannot ban: {error}"),
        }
        Ok((watcher, time))
    }

    /// Bans nobody, because nobody knows whom not to ban.
    fn hold_back(&mut self, daemon: &Daemon, look: &DueBans) {
        self.decider.hold_back();
        for offence in &look.offences {
            daemon.automatic.add(offence.limit(), Outcome::HeldBack, 1);
        }
    }

    /// Uses the policy in force; returns whether it is a new one.
    fn adopt(&mut self, daemon: &Daemon) -> bool {
        let datapath = daemon.datapath();
        let manifest = datapath.manifest();
        let is_new = self.generation != Some(manifest.generation);
        if is_new {
            self.generation = Some(manifest.generation);
            self.decider.adopt(&manifest.policy, monotonic_now());
        }
        is_new
    }

    fn look(&mut self, daemon: &Daemon) -> Result<DueBans, DatapathError> {
        let datapath = daemon.datapath();
        // Before anything is read: what is dropped meanwhile is in the next look.
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
            let datapath = daemon.datapath();
            let known = datapath.known_sources()?;
            let found = known.standing_of_prefix(prefix, &known.moment()?);
            Ok::<_, DatapathError>(found.is_proven)
        };
        let look = self.decider.look(now_ns, recorded.offenders, is_proven)?;
        for (limit, delayed) in &look.delayed {
            daemon.automatic.add(*limit, Outcome::Delayed, *delayed);
        }
        for (limit, number) in &look.unproven {
            daemon.automatic.add(*limit, Outcome::NotProven, *number);
        }
        self.unproven.add(&look.unproven);
        if let Some(due) = self.unproven.due(now_ns) {
            unproven::log(&daemon.datapath().manifest().policy, &due);
        }
        Ok(look)
    }
}

/// Does something on this thread; also returns the CPU time it took.
fn timed<W, T>(mut watcher: W, act: impl FnOnce(&mut W) -> T) -> (W, T, Duration) {
    let begun = cpu_time();
    let done = act(&mut watcher);
    (watcher, done, cpu_time().saturating_sub(begun))
}
