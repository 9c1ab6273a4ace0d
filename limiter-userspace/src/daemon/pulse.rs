//! Heartbeats of the daemon's threads. The service manager's watchdog must not be fed while one of them hangs.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use limiter_datapath::kernel::monotonic_now;

/// The longest time between two heartbeats of a working thread.
pub const BEAT: Duration = Duration::from_secs(1);

/// How long a thread may miss heartbeats before it counts as hanging: it may have to wait for the kernel's verifier,
/// or for a network card that is being set up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The last heartbeat of a thread.
#[derive(Debug, Default)]
pub struct Pulse {
    /// On the monotonic clock; 0: the thread does not run.
    beaten_ns: AtomicU64,
}

impl Pulse {
    /// Records a heartbeat.
    pub fn beat(&self) {
        self.beaten_ns.store(monotonic_now(), Ordering::Relaxed);
    }

    /// Records the orderly end of the thread.
    pub fn end(&self) {
        self.beaten_ns.store(0, Ordering::Relaxed);
    }

    fn is_late(&self, now_ns: u64) -> bool {
        let beaten_ns = self.beaten_ns.load(Ordering::Relaxed);
        let silent = Duration::from_nanos(now_ns.saturating_sub(beaten_ns));
        beaten_ns != 0 && silent > PATIENCE
    }
}

/// The heartbeats of all threads but the one that answers requests.
#[derive(Debug, Default)]
pub struct Pulses {
    /// Measures the pressure of sieves.
    pub pressure: Pulse,
    /// Finds automatic rates.
    pub capacity: Pulse,
    /// Reverts unconfirmed policies.
    pub confirmation: Pulse,
    /// Serves the metrics.
    pub metrics: Pulse,
    /// Serves the page.
    pub page: Pulse,
    /// Reads server names.
    pub server_names: Pulse,
    /// Receives from the other nodes of the fleet.
    pub fleet: Pulse,
    /// Shares budgets with the other nodes of the fleet.
    pub shares: Pulse,
    /// Shares known sources with the other nodes of the fleet.
    pub sources: Pulse,
}

impl Pulses {
    /// Describes threads that seem to hang, by their work.
    pub(super) fn late(&self) -> Vec<&'static str> {
        let now_ns = monotonic_now();
        let threads = [
            ("measures the pressure of sieves", &self.pressure),
            ("finds automatic rates", &self.capacity),
            ("reverts unconfirmed policies", &self.confirmation),
            ("serves the metrics", &self.metrics),
            ("serves the page", &self.page),
            ("reads server names", &self.server_names),
            ("hears the fleet", &self.fleet),
            ("shares the fleet's budgets", &self.shares),
            ("shares the fleet's known sources", &self.sources),
        ];
        let late = threads
            .into_iter()
            .filter(|(_, pulse)| pulse.is_late(now_ns));
        late.map(|(task, _)| task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_silent_for_too_long_is_late() {
        let pulse = Pulse::default();
        let late_at = |after: Duration| {
            let beaten_ns = pulse.beaten_ns.load(Ordering::Relaxed);
            pulse.is_late(beaten_ns + u64::try_from(after.as_nanos()).unwrap())
        };
        assert!(!late_at(Duration::from_hours(1)), "it has not begun");
        pulse.beat();
        assert!(!late_at(PATIENCE));
        assert!(late_at(PATIENCE + Duration::from_nanos(1)));
        pulse.end();
        assert!(!late_at(Duration::from_hours(1)), "it has ended");
    }
}
