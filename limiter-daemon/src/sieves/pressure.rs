//! Measures the pressure of each use of a sieve and gives it to the kernel. A thread with its own maps does it, so
//! that sieves work even while the rest of the daemon waits.

use std::{
    collections::BTreeMap,
    io, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use limiter_common::sieve::Pressure;
use limiter_datapath::kernel::{Datapath, DatapathError, PressureMaps, monotonic_now};
use limiter_reputation::pressure::{EVERY, Gauge, HOLDS_NS, UsePressure};
use tracing::{info, warn};

use crate::{
    watchdog::{CHECK_IN_INTERVAL, ThreadWatchdog},
    worker::Worker,
};

/// Shared between the thread and the rest of the daemon.
#[derive(Default)]
pub(crate) struct Pressures {
    shared: Mutex<PressureState>,
    /// Notified of a new policy, and when the daemon ends.
    changed: Condvar,
}

/// Locked only to store or copy a value.
#[derive(Default)]
struct PressureState {
    is_over: bool,
    followed: PolicyMaps,
    /// The next policy to measure, if there is a new one.
    next: Option<PressureUpdater>,
    measured: Vec<UsePressure>,
}

/// A policy and its maps.
#[derive(Default)]
struct PolicyMaps {
    generation: u64,
    maps: Option<Arc<PressureMaps>>,
}

impl Pressures {
    /// Measures the policy in force from now on. Call it after each change.
    pub(crate) fn follow(&self, datapath: &Datapath) {
        let manifest = datapath.manifest();
        let maps = datapath.source_maps();
        let followed = PolicyMaps {
            generation: manifest.generation,
            maps: maps.map(|maps| Arc::clone(maps.sieves().pressures())),
        };
        let mut shared = self.locked();
        if !followed.is(&shared.followed) {
            shared.next = Some(PressureUpdater {
                gauge: Gauge::new(&manifest.policy),
                maps: followed.maps.clone(),
                ..PressureUpdater::default()
            });
            shared.followed = followed;
            self.changed.notify_one();
        }
    }

    /// Returns the last measurement; empty if there is none.
    pub(crate) fn measured(&self) -> Vec<UsePressure> {
        self.locked().measured.clone()
    }

    fn locked(&self) -> MutexGuard<'_, PressureState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PolicyMaps {
    fn is(&self, other: &Self) -> bool {
        let same_maps = match (&self.maps, &other.maps) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (None, None) => true,
            _ => false,
        };
        self.generation == other.generation && same_maps
    }
}

pub(crate) fn start(
    pressures: &Arc<Pressures>,
    watchdog: &Arc<ThreadWatchdog>,
) -> io::Result<Worker> {
    let (working, ending) = (Arc::clone(pressures), Arc::clone(pressures));
    let watchdog = Arc::clone(watchdog);
    Worker::start(
        "pressure",
        move || {
            update_pressures(&working, &watchdog);
            watchdog.pressure.end();
        },
        move || {
            ending.locked().is_over = true;
            ending.changed.notify_one();
        },
    )
}

fn update_pressures(pressures: &Pressures, watchdog: &ThreadWatchdog) {
    let mut updater = PressureUpdater::default();
    loop {
        watchdog.pressure.check_in();
        let pause = if updater.gauge.is_idle() {
            CHECK_IN_INTERVAL
        } else {
            EVERY
        };
        let nothing_new = |shared: &mut PressureState| shared.next.is_none() && !shared.is_over;
        let waited = pressures
            .changed
            .wait_timeout_while(pressures.locked(), pause, nothing_new);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if shared.is_over {
            return;
        }
        if let Some(next) = shared.next.take() {
            shared.measured.clear();
            updater = next;
        }
        drop(shared);
        let measured = updater.measure();
        let mut shared = pressures.locked();
        // A newer policy is waiting, so this measurement is obsolete.
        if shared.next.is_none() {
            shared.measured = measured;
        }
    }
}

/// Measures for one policy.
#[derive(Default)]
struct PressureUpdater {
    gauge: Gauge,
    /// `None`: no program runs yet.
    maps: Option<Arc<PressureMaps>>,
    /// The pressures last given to the kernel, by index.
    reported: BTreeMap<u32, Pressure>,
    fails: bool,
}

impl PressureUpdater {
    /// Measures once; logs when measuring starts to fail or to work again.
    fn measure(&mut self) -> Vec<UsePressure> {
        match self.try_measure() {
            Ok(measured) => {
                if mem::take(&mut self.fails) {
                    info!("the pressure of sieves is measured again");
                }
                measured
            }
            Err(error) => {
                if !mem::replace(&mut self.fails, true) {
                    warn!(
                        "the pressure of sieves cannot be measured: {error}; they reject no source \
                         until it can"
                    );
                }
                Vec::new()
            }
        }
    }

    /// Measures once. Gives the kernel each pressure, and once more when it has ended.
    fn try_measure(&mut self) -> Result<Vec<UsePressure>, DatapathError> {
        let Some(maps) = &self.maps else {
            return Ok(Vec::new());
        };
        let now_ns = monotonic_now();
        let traffic = |index| maps.traffic(index);
        let open = |limit| maps.open_connections(limit);
        let measured = self.gauge.measure(now_ns, traffic, open)?;
        for one in &measured {
            let until_ns = now_ns.saturating_add(HOLDS_NS);
            let pressure = one.pressure.map_or_else(Pressure::default, |pressure| {
                Pressure::new(pressure.into(), until_ns)
            });
            // A lasting pressure is renewed by each poll: in a flood the next poll may come late.
            let reported = self.reported.entry(one.index).or_default();
            if *reported != Pressure::default() || pressure != Pressure::default() {
                maps.set_pressure(one.index, pressure)?;
                *reported = pressure;
            }
        }
        Ok(measured)
    }
}
