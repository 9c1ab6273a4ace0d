//! The daemon's guard: regularly finds the addresses that must not be banned, and reports its success.
//!
//! While it cannot find them, no source is banned automatically. Bans by hand use the last answer for some minutes;
//! after that they must be forced.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use limiter_datapath::kernel::wall_clock_now;
use thiserror::Error;
use tracing::{info, warn};

use crate::{
    guard::{GuardProbe, ProbeError, ProtectedAddresses, are_sessions_recorded},
    protocol::{GuardStatus, bans::Session},
};

/// How long an answer is reused: a stream of bans asks a thousand times a second, and a router's routes take long to
/// read.
const MEMORY: Duration = Duration::from_secs(5);

/// How long to wait after a failed question.
const RETRY: Duration = Duration::from_secs(1);

/// The most age of an answer for bans by hand.
const OLDEST: Duration = Duration::from_mins(10);

/// The most age of an answer while any limit bans.
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
    answers: tokio::sync::Mutex<Answers>,
    status: Mutex<GuardStatus>,
}

/// The answers to the guard's questions.
#[derive(Default)]
struct Answers {
    probe: GuardProbe,
    /// The last good answer, and when it came.
    answer: Option<(Instant, ProtectedAddresses)>,
    /// The last question, if it failed.
    failure: Option<(Instant, GuardError)>,
}

impl Guard {
    /// Returns the addresses that only a forced ban may contain, as of some seconds ago at most.
    pub(super) async fn protected(&self) -> Result<ProtectedAddresses, GuardError> {
        self.answers.lock().await.protected(self).await
    }

    /// Returns the same for bans by hand from `session`: as of some minutes ago at most, if the guard cannot find
    /// them now.
    pub(super) async fn by_hand(
        &self,
        session: Option<Session>,
    ) -> Result<ProtectedAddresses, GuardError> {
        let mut answers = self.answers.lock().await;
        let protected = match answers.protected(self).await {
            Ok(protected) => protected,
            Err(unavailable) => {
                let kept = answers.within(OLDEST, Instant::now());
                kept.ok_or(unavailable)?.clone()
            }
        };
        Ok(protected.with(session))
    }

    /// Asks for the first time, unless that was done.
    pub(super) async fn begin(&self) {
        let mut answers = self.answers.lock().await;
        if answers.answer.is_none() {
            // The status holds the result.
            let _ = answers.protected(self).await;
        }
    }

    /// Asks again if the last answer is old, so that the state is known before it is needed.
    pub(super) async fn refresh(&self) {
        let mut answers = self.answers.lock().await;
        if answers.failure.is_some() || answers.within(REFRESH, Instant::now()).is_none() {
            // The status holds the result.
            let _ = answers.protected(self).await;
        }
    }

    /// Returns the guard's status.
    pub(super) fn status(&self) -> GuardStatus {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, GuardStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an answer, or why there is none; logs changes.
    fn record(&self, answer: Result<&ProtectedAddresses, &GuardError>) {
        let mut status = self.locked();
        let before = status.error.take();
        match answer {
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

impl Answers {
    async fn protected(&mut self, guard: &Guard) -> Result<ProtectedAddresses, GuardError> {
        if let Some(recent) = self.recent(Instant::now()) {
            return recent;
        }
        let asked = ProtectedAddresses::ask(&mut self.probe).await;
        self.answered(guard, asked)
    }

    /// Records the answer to a question.
    fn answered(
        &mut self,
        guard: &Guard,
        asked: Result<ProtectedAddresses, ProbeError>,
    ) -> Result<ProtectedAddresses, GuardError> {
        let asked = asked.map_err(GuardError::from);
        guard.record(asked.as_ref());
        self.record(asked.clone(), Instant::now());
        asked
    }

    /// The last answer or failure, if it is too recent at `now` to ask again.
    fn recent(&self, now: Instant) -> Option<Result<ProtectedAddresses, GuardError>> {
        match &self.failure {
            Some((at, unavailable)) => (now < *at + RETRY).then(|| Err(unavailable.clone())),
            None => self.within(MEMORY, now).cloned().map(Ok),
        }
    }

    /// The last good answer, if it is not as old as `age`.
    fn within(&self, age: Duration, now: Instant) -> Option<&ProtectedAddresses> {
        let (at, protected) = self.answer.as_ref()?;
        (now < *at + age).then_some(protected)
    }

    fn record(&mut self, asked: Result<ProtectedAddresses, GuardError>, now: Instant) {
        match asked {
            Ok(protected) => {
                self.failure = None;
                self.answer = Some((now, protected));
            }
            Err(unavailable) => self.failure = Some((now, unavailable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_failures_are_good_for_their_times() {
        let begun = Instant::now();
        let mut answers = Answers::default();
        assert!(answers.recent(begun).is_none());
        answers.record(Ok(ProtectedAddresses::default()), begun);
        assert!(matches!(answers.recent(begun), Some(Ok(_))));
        assert!(answers.recent(begun + MEMORY).is_none());
        assert!(answers.within(REFRESH, begun + MEMORY).is_some());
        assert!(answers.within(REFRESH, begun + REFRESH).is_none());

        let failed = begun + MEMORY;
        answers.record(Err(ProbeError::Late("routes").into()), failed);
        assert!(matches!(answers.recent(failed), Some(Err(_))));
        assert!(answers.recent(failed + RETRY).is_none());
        // By hand, the answer from before is still good.
        assert!(answers.within(OLDEST, failed).is_some());
        assert!(answers.within(OLDEST, begun + OLDEST).is_none());

        answers.record(Ok(ProtectedAddresses::default()), failed + RETRY);
        assert!(matches!(answers.recent(failed + RETRY), Some(Ok(_))));
    }

    /// `daemon/automatic` bans by [`Guard::protected`] alone.
    #[test]
    fn while_an_answer_is_late_nobody_may_be_banned() {
        let (guard, mut answers) = (Guard::default(), Answers::default());
        // An answer that was good once does not serve.
        answers
            .answered(&guard, Ok(ProtectedAddresses::default()))
            .unwrap();
        let late = answers.answered(&guard, Err(ProbeError::Late("default gateways")));
        assert!(late.is_err());
        let (failed, _) = answers.failure.as_ref().unwrap();
        assert!(matches!(answers.recent(*failed), Some(Err(_))));
        let told = guard.status().error;
        let expected = "the kernel has not listed the default gateways within 10s";
        assert_eq!(told.as_deref(), Some(expected));
        // By hand, it does.
        assert!(answers.within(OLDEST, *failed).is_some());
    }
}
