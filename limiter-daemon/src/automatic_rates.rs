//! Finds automatic rates and gives them to the kernel, on a thread of its own. Each rate holds for seconds only:
//! without renewal, the kernel falls back to the floor.

use std::{error::Error, io, mem, sync::Arc};

use limiter_common::strategy::gcra::CurrentRate;
use limiter_datapath::kernel::{Datapath, monotonic_now};
use limiter_host::capacity::{EVERY, Finder, HostFiles, HostLosses, UdpSockets};
use limiter_policy::policy::{Limit, Mode, PortRange, automatic::interval_of};
use tracing::{info, warn};

use super::{
    capacity::{Capacity, FindError, RateFinders},
    shared_datapath::SharedDatapath,
    watchdog::{CHECK_IN_INTERVAL, ThreadWatchdog},
    worker::Worker,
};

/// The lifetime of a rate in the kernel, in nanoseconds: in a flood, the next poll may come late.
const HOLDS_NS: u64 = 2_000_000_000;

pub(super) fn start(
    datapath: Arc<SharedDatapath>,
    capacity: Arc<Capacity>,
    watchdog: Arc<ThreadWatchdog>,
) -> io::Result<Worker> {
    let ending = Arc::clone(&capacity);
    Worker::start(
        "capacity",
        move || {
            update_rates(&datapath, &capacity, &watchdog);
            watchdog.capacity.end();
        },
        move || ending.end(),
    )
}

/// Keeps the rates up to date until the daemon ends.
fn update_rates(datapath: &SharedDatapath, capacity: &Capacity, watchdog: &ThreadWatchdog) {
    let mut updater = RateUpdater::default();
    loop {
        watchdog.capacity.check_in();
        let pause = if updater.found.finders.is_empty() {
            CHECK_IN_INTERVAL
        } else {
            EVERY
        };
        if capacity.wait(pause) {
            return;
        }
        updater.poll(datapath);
        capacity.store(updater.found.clone());
    }
}

/// Finds the rates, from one poll to the next.
#[derive(Default)]
struct RateUpdater {
    found: RateFinders,
    /// `None`: no rate was automatic yet, or the sources could not be opened, which the next poll retries.
    host: Option<Host>,
    /// The host's losses as of the last poll; `None`: unknown.
    seen: Option<HostLosses>,
}

/// The sources of the host's losses.
struct Host {
    files: HostFiles,
    sockets: UdpSockets,
    /// Ports that the log has reported as unreadable.
    unread: Vec<PortRange>,
}

impl Host {
    fn open() -> Result<Self, FindError> {
        Ok(Self {
            files: HostFiles::open()?,
            sockets: UdpSockets::open().map_err(FindError::Sockets)?,
            unread: Vec::new(),
        })
    }

    /// Reads the losses of the host, and of each socket on `ports`.
    fn read(&mut self, ports: &[PortRange]) -> Result<HostLosses, FindError> {
        let overload = self.files.overload()?;
        let losses = match ports {
            [] => None,
            ports => self.sockets.losses(ports).map_or_else(
                |error| {
                    self.warn_once(ports, &error);
                    None
                },
                Some,
            ),
        };
        Ok(HostLosses {
            overload,
            sockets: losses,
            cpus: self.files.cpus()?,
        })
    }

    /// Logs once that sockets cannot be read: local users may make that come and go.
    fn warn_once(&mut self, ports: &[PortRange], error: &dyn Error) {
        if self.unread != ports {
            self.unread = ports.to_vec();
            warn!(
                "cannot read the losses of UDP sockets on the ports of automatic rates: {error}; \
                 meanwhile any full receive buffer lowers these rates"
            );
        }
    }
}

impl RateUpdater {
    /// Polls once; logs when polling starts to fail or to work again.
    fn poll(&mut self, datapath: &SharedDatapath) {
        // The host may be slow to answer, so it is read before the datapath is locked.
        let ports = self.ports();
        let seen = self.read(&ports);
        let datapath = datapath.read();
        self.follow(&datapath.manifest().policy.limits);
        // The earlier losses of sockets on other ports are unknown.
        let seen = seen.map(|seen| seen.filter(|_| self.ports() == ports));
        match seen.and_then(|seen| self.give(&datapath, seen)) {
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

    /// Continues with the limits of the policy in force.
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

    /// Returns the ports of all sockets that the limits watch for losses.
    fn ports(&self) -> Vec<PortRange> {
        let finders = self.found.finders.values();
        finders
            .flat_map(|finder| finder.loss_filter().ports())
            .cloned()
            .collect()
    }

    /// Reads the host's losses; `None`: no rate is automatic.
    fn read(&mut self, ports: &[PortRange]) -> Result<Option<HostLosses>, FindError> {
        if self.found.finders.is_empty() {
            return Ok(None);
        }
        let host = match &mut self.host {
            Some(host) => host,
            none => none.insert(Host::open()?),
        };
        host.read(ports).map(Some)
    }

    /// Moves each rate by the losses since the last poll, and gives it to the kernel.
    fn give(&mut self, datapath: &Datapath, seen: Option<HostLosses>) -> Result<(), FindError> {
        let finders = &mut self.found.finders;
        let Some(source_maps) = datapath.source_maps().filter(|_| !finders.is_empty()) else {
            self.seen = None;
            return Ok(());
        };
        let before = mem::replace(&mut self.seen, seen);
        let now_ns = monotonic_now();
        let until_ns = now_ns.saturating_add(HOLDS_NS);
        for (limit, finder) in finders {
            let traffic = datapath.limit_traffic_by_cpu(*limit)?;
            if let (Some(before), Some(seen)) = (&before, &self.seen) {
                finder.update(before, seen, traffic, now_ns);
            }
            let rate = CurrentRate::new(interval_of(finder.rate()), until_ns);
            source_maps.rates().set(*limit, rate)?;
        }
        Ok(())
    }
}
