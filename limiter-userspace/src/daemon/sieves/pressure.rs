//! Measures the pressure of each use of a sieve, and has the datapath know it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_common::sieve::Pressure;
use tokio::{sync::Notify, time::sleep};
use tracing::{info, warn};

use crate::{
    daemon::Daemon,
    datapath::{Datapath, DatapathError, monotonic_now},
    reputation::pressure::{EVERY, Gauge, HOLDS_NS, Measured},
};

/// The pressures as they were measured last.
#[derive(Default)]
pub(in crate::daemon) struct Pressures {
    /// Another policy is in force.
    changed: Notify,
    measured: Mutex<Vec<Measured>>,
}

impl Pressures {
    /// There may be other sieves, or some where there were none.
    pub(in crate::daemon) fn policy_changed(&self) {
        self.changed.notify_one();
    }

    /// What was measured last; empty where nothing is.
    pub(in crate::daemon) fn measured(&self) -> Vec<Measured> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Measured>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the pressures up to date, forever. Where no sieve is used it sleeps until one is.
pub(in crate::daemon) async fn keep(daemon: &Daemon) -> Infallible {
    loop {
        let mut keeper = Keeper::new(&daemon.datapath());
        if keeper.gauge.is_idle() {
            daemon.pressures.locked().clear();
            daemon.pressures.changed.notified().await;
            continue;
        }
        let mut works = true;
        while keeper.generation == daemon.datapath().manifest().generation {
            let looked = keeper.look(&daemon.datapath());
            match (looked, works) {
                (Ok(measured), was_working) => {
                    if !was_working {
                        info!("the pressure of sieves is measured again");
                    }
                    *daemon.pressures.locked() = measured;
                    works = true;
                }
                (Err(error), true) => {
                    warn!(
                        "the pressure of sieves cannot be measured: {error}; they reject nobody \
                         until it can"
                    );
                    daemon.pressures.locked().clear();
                    works = false;
                }
                (Err(_), false) => {}
            }
            sleep(EVERY).await;
        }
    }
}

/// Measures for one policy.
struct Keeper {
    generation: u64,
    gauge: Gauge,
    /// What the datapath has been told, by index.
    told: BTreeMap<u32, Pressure>,
}

impl Keeper {
    fn new(datapath: &Datapath) -> Self {
        let manifest = datapath.manifest();
        Self {
            generation: manifest.generation,
            gauge: Gauge::new(&manifest.policy),
            told: BTreeMap::new(),
        }
    }

    /// Measures once, and tells the datapath of each pressure, and once where there is none any more.
    fn look(&mut self, datapath: &Datapath) -> Result<Vec<Measured>, DatapathError> {
        let Some(reputation) = datapath.reputation() else {
            return Ok(Vec::new());
        };
        let maps = reputation.sieves();
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
