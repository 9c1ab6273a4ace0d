//! The daemon's guard: regularly finds the addresses that must not be banned, and reports its success.
//!
//! While it cannot find them, no source is banned automatically. Bans by hand use the last result for some minutes;
//! after that they must be forced.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use limiter_datapath::kernel::wall_clock_now;
use thiserror::Error;
use tracing::{info, warn};

use limiter_host::guard::{GuardProbe, ProbeError, ProtectedAddresses, are_sessions_recorded};
use limiter_protocol::{GuardStatus, bans::Session};

/// How long a result is reused: a stream of bans asks a thousand times a second, and a router's routes take long to
/// read.
const MEMORY: Duration = Duration::from_secs(5);

/// How long to wait after a failed question.
const RETRY: Duration = Duration::from_secs(1);

/// The most age of a result for bans by hand.
const OLDEST: Duration = Duration::from_mins(10);

/// The most age of a result while any limit bans.
const REFRESH: Duration = Duration::from_mins(1);

/// Why the guard cannot find the addresses not to ban.
#[derive(Clone, Debug, Error)]
#[error(transparent)]
pub(super) struct GuardError(Arc<ProbeError>);

impl From<ProbeError> for GuardError {
    fn from(error: ProbeError) -> Self {
        Self(Arc::new(error))
    }
}

#[derive(Default)]
pub(super) struct Guard {
    cache: tokio::sync::Mutex<ProbeCache>,
    status: Mutex<GuardStatus>,
}

/// The results of the guard's questions.
#[derive(Default)]
struct ProbeCache {
    probe: GuardProbe,
    /// The last good result, and when it came.
    found: Option<(Instant, ProtectedAddresses)>,
    /// The last question, if it failed.
    failure: Option<(Instant, GuardError)>,
}

impl Guard {
    /// Returns the addresses that only a forced ban may contain, as of some seconds ago at most.
    pub(super) async fn protected(&self) -> Result<ProtectedAddresses, GuardError> {
        self.cache.lock().await.protected(self).await
    }

    /// Returns the same for bans by hand from `session`: as of some minutes ago at most, if the guard cannot find
    /// them now.
    pub(super) async fn by_hand(
        &self,
        session: Option<Session>,
    ) -> Result<ProtectedAddresses, GuardError> {
        let mut cache = self.cache.lock().await;
        let protected = match cache.protected(self).await {
            Ok(protected) => protected,
            Err(unavailable) => {
                let kept = cache.within(OLDEST, Instant::now());
                kept.ok_or(unavailable)?.clone()
            }
        };
        Ok(protected.with(session))
    }

    /// Asks for the first time, unless that was done.
    pub(super) async fn begin(&self) {
        let mut cache = self.cache.lock().await;
        if cache.found.is_none() {
            // The status holds the result.
            let _ = cache.protected(self).await;
        }
    }

    /// Asks again if the last result is old, so that the state is known before it is needed.
    pub(super) async fn refresh(&self) {
        let mut cache = self.cache.lock().await;
        if cache.failure.is_some() || cache.within(REFRESH, Instant::now()).is_none() {
            // The status holds the result.
            let _ = cache.protected(self).await;
        }
    }

    /// Returns the guard's status.
    pub(super) fn status(&self) -> GuardStatus {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, GuardStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a result, or why there is none; logs changes.
    fn record(&self, result: Result<&ProtectedAddresses, &GuardError>) {
        let mut status = self.locked();
        let before = status.error.take();
        match result {
            Ok(protected) => {
                status.protected = protected.addresses();
                status.sessions_recorded = are_sessions_recorded();
                status.answered_at = Some(wall_clock_now());
                if before.is_some() {
                    info!("the guard finds again the addresses that it must spare");
                }
            }
            Err(unavailable) => {
                let why = unavailable.to_string();
                if before.is_none() {
                    warn!(
                        why,
                        "the guard cannot find the addresses that it must spare, so no source is banned automatically: \
                         {why}"
                    );
                }
                status.error = Some(why);
            }
        }
        if before.is_some() != status.error.is_some() || status.since == Timestamp::default() {
            status.since = wall_clock_now();
        }
    }
}

impl ProbeCache {
    async fn protected(&mut self, guard: &Guard) -> Result<ProtectedAddresses, GuardError> {
        if let Some(recent) = self.recent(Instant::now()) {
            return recent;
        }
        let asked = ProtectedAddresses::query(&mut self.probe).await;
        self.finish(guard, asked)
    }

    /// Records the result of a question.
    fn finish(
        &mut self,
        guard: &Guard,
        asked: Result<ProtectedAddresses, ProbeError>,
    ) -> Result<ProtectedAddresses, GuardError> {
        let asked = asked.map_err(GuardError::from);
        guard.record(asked.as_ref());
        self.record(asked.clone(), Instant::now());
        asked
    }

    /// The last result or failure, if it is too recent at `now` to ask again.
    fn recent(&self, now: Instant) -> Option<Result<ProtectedAddresses, GuardError>> {
        match &self.failure {
            Some((at, unavailable)) => (now < *at + RETRY).then(|| Err(unavailable.clone())),
            None => self.within(MEMORY, now).cloned().map(Ok),
        }
    }

    /// The last good result, if it is not as old as `age`.
    fn within(&self, age: Duration, now: Instant) -> Option<&ProtectedAddresses> {
        let (at, protected) = self.found.as_ref()?;
        (now < *at + age).then_some(protected)
    }

    fn record(&mut self, asked: Result<ProtectedAddresses, GuardError>, now: Instant) {
        match asked {
            Ok(protected) => {
                self.failure = None;
                self.found = Some((now, protected));
            }
            Err(unavailable) => self.failure = Some((now, unavailable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_failures_are_good_for_their_times() {
        let begun = Instant::now();
        let mut cache = ProbeCache::default();
        assert!(cache.recent(begun).is_none());
        cache.record(Ok(ProtectedAddresses::default()), begun);
        assert!(matches!(cache.recent(begun), Some(Ok(_))));
        assert!(cache.recent(begun + MEMORY).is_none());
        assert!(cache.within(REFRESH, begun + MEMORY).is_some());
        assert!(cache.within(REFRESH, begun + REFRESH).is_none());

        let failed = begun + MEMORY;
        cache.record(Err(ProbeError::Late("routes").into()), failed);
        assert!(matches!(cache.recent(failed), Some(Err(_))));
        assert!(cache.recent(failed + RETRY).is_none());
        // By hand, the result from before is still good.
        assert!(cache.within(OLDEST, failed).is_some());
        assert!(cache.within(OLDEST, begun + OLDEST).is_none());

        cache.record(Ok(ProtectedAddresses::default()), failed + RETRY);
        assert!(matches!(cache.recent(failed + RETRY), Some(Ok(_))));
    }

    /// `daemon/automatic` bans by [`Guard::protected`] alone.
    #[test]
    fn while_a_probe_is_late_nobody_may_be_banned() {
        let (guard, mut cache) = (Guard::default(), ProbeCache::default());
        // A result that was good once does not serve.
        cache
            .finish(&guard, Ok(ProtectedAddresses::default()))
            .unwrap();
        let late = cache.finish(&guard, Err(ProbeError::Late("default gateways")));
        assert!(late.is_err());
        let (failed, _) = cache.failure.as_ref().unwrap();
        assert!(matches!(cache.recent(*failed), Some(Err(_))));
        let reported = guard.status().error;
        let expected = "the kernel has not listed the default gateways within 10s";
        assert_eq!(reported.as_deref(), Some(expected));
        // By hand, it does.
        assert!(cache.within(OLDEST, *failed).is_some());
    }
}
