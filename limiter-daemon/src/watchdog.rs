//! The watchdog of the daemon's threads. The service manager's watchdog must not be fed while one of them hangs.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use limiter_datapath::kernel::monotonic_now;

pub(crate) use limiter_protocol::web::CHECK_IN_INTERVAL;

/// How long a thread may be without a check-in before it counts as hanging: it may have to wait for the kernel's
/// verifier, or for a network card that is being set up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The last check-in of a thread.
#[derive(Debug, Default)]
pub(crate) struct WatchedThread {
    /// On the monotonic clock; 0: the thread does not run.
    checked_in_ns: AtomicU64,
}

impl WatchedThread {
    /// Records that the thread works.
    pub(crate) fn check_in(&self) {
        self.checked_in_ns.store(monotonic_now(), Ordering::Relaxed);
    }

    /// Records the orderly end of the thread.
    pub(crate) fn end(&self) {
        self.checked_in_ns.store(0, Ordering::Relaxed);
    }

    fn is_late(&self, now_ns: u64) -> bool {
        let checked_in_ns = self.checked_in_ns.load(Ordering::Relaxed);
        let silent = Duration::from_nanos(now_ns.saturating_sub(checked_in_ns));
        checked_in_ns != 0 && silent > PATIENCE
    }
}

/// Watches all threads but the one that answers requests.
#[derive(Debug, Default)]
pub(crate) struct ThreadWatchdog {
    /// Measures the pressure of sieves.
    pub(crate) pressure: WatchedThread,
    /// Finds automatic rates.
    pub(crate) capacity: WatchedThread,
    /// Reverts unconfirmed policies.
    pub(crate) confirmation: WatchedThread,
    /// Serves the metrics.
    pub(crate) metrics: WatchedThread,
    /// Serves the page.
    pub(crate) page: WatchedThread,
    /// Reads server names.
    pub(crate) server_names: WatchedThread,
    /// Receives from the other nodes of the fleet.
    pub(crate) fleet: WatchedThread,
    /// Shares budgets with the other nodes of the fleet.
    pub(crate) leases: WatchedThread,
}

impl ThreadWatchdog {
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
            ("shares the fleet's budgets", &self.leases),
        ];
        let late = threads
            .into_iter()
            .filter(|(_, watched)| watched.is_late(now_ns));
        late.map(|(task, _)| task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_silent_for_too_long_is_late() {
        let watched = WatchedThread::default();
        let late_at = |after: Duration| {
            let checked_in_ns = watched.checked_in_ns.load(Ordering::Relaxed);
            watched.is_late(checked_in_ns + u64::try_from(after.as_nanos()).unwrap())
        };
        assert!(!late_at(Duration::from_hours(1)), "it has not begun");
        watched.check_in();
        assert!(!late_at(PATIENCE));
        assert!(late_at(PATIENCE + Duration::from_nanos(1)));
        watched.end();
        assert!(!late_at(Duration::from_hours(1)), "it has ended");
    }
}
