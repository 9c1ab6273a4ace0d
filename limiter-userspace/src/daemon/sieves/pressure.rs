//! Measures the pressure of each use of a sieve, and has the kernel know it: on a thread that does
//! nothing else, with maps of its own. Whatever the rest of the daemon waits for, sieves go on.

use std::{
    collections::BTreeMap,
    io, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use limiter_common::sieve::Pressure;
use limiter_datapath::kernel::{
    Datapath, DatapathError, PressureMaps, monotonic_now, possible_cpus,
};
use tracing::{info, warn};

use crate::{
    daemon::pulse::{BEAT, Pulses},
    reputation::pressure::{EVERY, Gauge, HOLDS_NS, Measured},
};

/// What the thread and the rest of the daemon tell each other.
#[derive(Default)]
pub(in crate::daemon) struct Pressures {
    shared: Mutex<Shared>,
    /// There is something else to do.
    changed: Condvar,
}

/// Nobody holds it for longer than it takes to put something there or to take it.
#[derive(Default)]
struct Shared {
    is_over: bool,
    /// What is in force.
    followed: Followed,
    /// What is to be measured from now on, where that is news.
    next: Option<Keeper>,
    /// As it was measured last.
    measured: Vec<Measured>,
}

/// A policy over its maps.
#[derive(Default)]
struct Followed {
    generation: u64,
    maps: Option<Arc<PressureMaps>>,
}

impl Pressures {
    /// Has the policy that is in force be measured from now on. To be called after each change.
    pub(in crate::daemon) fn follow(&self, datapath: &Datapath) {
        let manifest = datapath.manifest();
        let maps = datapath.reputation();
        let followed = Followed {
            generation: manifest.generation,
            maps: maps.map(|maps| Arc::clone(maps.sieves().pressures())),
        };
        let mut shared = self.locked();
        if !followed.is(&shared.followed) {
            shared.next = Some(Keeper {
                gauge: Gauge::new(&manifest.policy),
                maps: followed.maps.clone(),
                ..Keeper::default()
            });
            shared.followed = followed;
            self.changed.notify_one();
        }
    }

    /// What was measured last; empty where nothing is.
    pub(in crate::daemon) fn measured(&self) -> Vec<Measured> {
        self.locked().measured.clone()
    }

    fn locked(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    fn is(&self, other: &Self) -> bool {
        let same_maps = match (&self.maps, &other.maps) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (None, None) => true,
            _ => false,
        };
        self.generation == other.generation && same_maps
    }
}

/// The thread that measures. It ends when this is dropped.
pub(in crate::daemon) struct PressureThread {
    pressures: Arc<Pressures>,
    thread: Option<JoinHandle<()>>,
}

impl PressureThread {
    pub(in crate::daemon) fn start(
        pressures: &Arc<Pressures>,
        pulses: &Arc<Pulses>,
    ) -> io::Result<Self> {
        let pressures = Arc::clone(pressures);
        let thread = {
            let (pressures, pulses) = (Arc::clone(&pressures), Arc::clone(pulses));
            let thread = thread::Builder::new().name("pressure".to_owned());
            thread.spawn(move || {
                keep(&pressures, &pulses);
                pulses.pressure.end();
            })?
        };
        Ok(Self {
            pressures,
            thread: Some(thread),
        })
    }
}

impl Drop for PressureThread {
    fn drop(&mut self) {
        self.pressures.locked().is_over = true;
        self.pressures.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // What it panicked with is on stderr.
            let _ = thread.join();
        }
    }
}

/// Keeps the pressures up to date until it is over.
fn keep(pressures: &Pressures, pulses: &Pulses) {
    // Later there may be no descriptor to be had: each thread looks once how many CPUs there are.
    let _ = possible_cpus();
    let mut keeper = Keeper::default();
    loop {
        pulses.pressure.beat();
        let pause = if keeper.gauge.is_idle() { BEAT } else { EVERY };
        let nothing_new = |shared: &mut Shared| shared.next.is_none() && !shared.is_over;
        let waited = pressures
            .changed
            .wait_timeout_while(pressures.locked(), pause, nothing_new);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if shared.is_over {
            return;
        }
        if let Some(next) = shared.next.take() {
            shared.measured.clear();
            keeper = next;
        }
        drop(shared);
        let measured = keeper.look();
        let mut shared = pressures.locked();
        // Nobody wants to know of a policy that is not in force any more.
        if shared.next.is_none() {
            shared.measured = measured;
        }
    }
}

/// Measures for one policy.
#[derive(Default)]
struct Keeper {
    gauge: Gauge,
    /// `None`: no program runs yet.
    maps: Option<Arc<PressureMaps>>,
    /// What the kernel has been told, by index.
    told: BTreeMap<u32, Pressure>,
    fails: bool,
}

impl Keeper {
    /// Measures once; says in the log when that has become possible or impossible.
    fn look(&mut self) -> Vec<Measured> {
        match self.try_look() {
            Ok(measured) => {
                if mem::take(&mut self.fails) {
                    info!("the pressure of sieves is measured again");
                }
                measured
            }
            Err(error) => {
                if !mem::replace(&mut self.fails, true) {
                    warn!(
                        "the pressure of sieves cannot be measured: {error}; they reject nobody \
                         until it can"
                    );
                }
                Vec::new()
            }
        }
    }

    /// Measures once, and tells the kernel of each pressure, and once where there is none any more.
    fn try_look(&mut self) -> Result<Vec<Measured>, DatapathError> {
        let Some(maps) = &self.maps else {
            return Ok(Vec::new());
        };
        let now_ns = monotonic_now();
        let measured = self.gauge.measure(now_ns, |index| maps.traffic(index))?;
        for one in &measured {
            let until_ns = now_ns.saturating_add(HOLDS_NS);
            let pressure = one.pressure.map_or_else(Pressure::default, |pressure| {
                Pressure::new(pressure.into(), until_ns)
            });
            // One that goes on is told with each look: in a flood the next one may come late.
            let told = self.told.entry(one.index).or_default();
            if *told != Pressure::default() || pressure != Pressure::default() {
                maps.set_pressure(one.index, pressure)?;
                *told = pressure;
            }
        }
        Ok(measured)
    }
}
