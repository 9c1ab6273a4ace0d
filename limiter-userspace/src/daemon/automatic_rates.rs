//! Finds automatic rates and gives them to the kernel, on a thread that does nothing else. Each rate
//! that it gives holds for seconds only: without it, the kernel falls back to the floor.

use std::{io, mem, sync::Arc};

use limiter_common::strategy::gcra::CurrentRate;
use limiter_datapath::kernel::{Datapath, monotonic_now};
use limiter_policy::policy::{Limit, Mode, automatic::interval_of};
use tracing::{info, warn};

use super::{
    capacity::{FindError, Found},
    pulse::BEAT,
    shared::Daemon,
    worker::Worker,
};
use crate::capacity::{EVERY, Finder, HostFiles, Seen};

/// How long the kernel holds to a rate, in nanoseconds: in a flood, the next look may come late.
const HOLDS_NS: u64 = 2_000_000_000;

/// Starts the thread.
pub(super) fn start(daemon: &Arc<Daemon>) -> io::Result<Worker> {
    let (working, ending) = (Arc::clone(daemon), Arc::clone(daemon));
    Worker::start(
        "capacity",
        move || {
            keep(&working);
            working.pulses.capacity.end();
        },
        move || ending.capacity.end(),
    )
}

/// Keeps the rates up to date until the daemon ends.
fn keep(daemon: &Daemon) {
    let mut keeper = Keeper::default();
    loop {
        daemon.pulses.capacity.beat();
        let pause = if keeper.found.finders.is_empty() {
            BEAT
        } else {
            EVERY
        };
        if daemon.capacity.wait(pause) {
            return;
        }
        keeper.look(&daemon.datapath());
        daemon.capacity.store(keeper.found.clone());
    }
}

/// Finds the rates, from one look to the next.
#[derive(Default)]
struct Keeper {
    found: Found,
    /// `None`: no rate was automatic yet, or they could not be opened, which is tried again.
    files: Option<HostFiles>,
    /// What the host had lost at the last look; `None`: that is not known.
    seen: Option<Seen>,
}

impl Keeper {
    /// Looks once; logs when that becomes possible or impossible.
    fn look(&mut self, datapath: &Datapath) {
        self.follow(&datapath.manifest().policy.limits);
        match self.try_look(datapath) {
            Ok(()) => {
                let has_failed = mem::take(&mut self.found.error).is_some();
                if has_failed && !self.found.finders.is_empty() {
                    info!("automatic rates are found again");
                }
            }
            Err(error) => {
                // No rate is renewed, so in seconds the floors hold.
                self.seen = None;
                for finder in self.found.finders.values_mut() {
                    finder.give_up();
                }
                let error = Arc::new(error);
                if self.found.error.replace(Arc::clone(&error)).is_none() {
                    warn!(
                        "automatic rates cannot be found: {error}; their floors are in force until \
                         they can"
                    );
                }
            }
        }
    }

    /// Goes on with the limits of the policy in force.
    fn follow(&mut self, limits: &[Limit]) {
        let mut before = mem::take(&mut self.found.finders);
        let finders = limits.iter().filter(|limit| limit.mode != Mode::Off);
        let finders = finders.filter_map(|limit| {
            let known = before.remove(&limit.id);
            let finder = match known {
                Some(finder) => finder.under(limit),
                None => Finder::new(limit),
            };
            Some((limit.id, finder?))
        });
        self.found.finders = finders.collect();
    }

    /// Moves each rate by what has happened since the last look, and gives it to the kernel.
    fn try_look(&mut self, datapath: &Datapath) -> Result<(), FindError> {
        let finders = &mut self.found.finders;
        let Some(reputation) = datapath.reputation().filter(|_| !finders.is_empty()) else {
            self.seen = None;
            return Ok(());
        };
        let needs_sockets = finders
            .values()
            .any(|finder| finder.hearing().needs_sockets());
        let files = match &mut self.files {
            Some(files) => files,
            none => none.insert(HostFiles::open()?),
        };
        let seen = Seen::read(files, needs_sockets)?;
        let before = self.seen.replace(seen.clone());
        let now_ns = monotonic_now();
        let until_ns = now_ns.saturating_add(HOLDS_NS);
        for (limit, finder) in finders {
            let refused = datapath.limit_traffic(*limit)?.dropped.packets;
            if let Some(before) = &before {
                finder.look(before, &seen, refused, now_ns);
            }
            let rate = CurrentRate::new(interval_of(finder.rate()), until_ns);
            reputation.rates().set(*limit, rate)?;
        }
        Ok(())
    }
}
