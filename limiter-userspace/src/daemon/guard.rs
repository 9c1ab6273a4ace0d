//! The daemon's guard: whom nobody bans, asked again and again, and what is told of how that goes.
//!
//! Where it cannot be known, nobody is banned automatically. Bans by hand go by the last answer for
//! some minutes; after that they must be forced.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use limiter_datapath::kernel::wall_clock_now;
use tracing::{info, warn};

use crate::{
    guard::{Asker, Protected, Session, are_sessions_recorded},
    protocol::GuardStatus,
};

/// How long an answer is good for: a stream of bans asks a thousand times a second, and the routes
/// of a router take long to tell.
const MEMORY: Duration = Duration::from_secs(5);

/// How long it takes from a question without an answer to the next one.
const RETRY: Duration = Duration::from_secs(1);

/// How old an answer is at most by which somebody is banned by hand.
const OLDEST: Duration = Duration::from_mins(10);

/// How old an answer is at most, as long as any limit bans.
const REFRESH: Duration = Duration::from_mins(1);

/// Why nobody knows whom not to ban.
#[derive(Clone, Debug)]
pub(super) struct Blind(pub(super) String);

/// The guard.
#[derive(Default)]
pub(super) struct Guard {
    known: tokio::sync::Mutex<Known>,
    status: Mutex<GuardStatus>,
}

/// What it knows.
#[derive(Default)]
struct Known {
    asker: Asker,
    /// The last good answer, and when it came.
    answer: Option<(Instant, Protected)>,
    /// The last question without an answer; `None`: there was one to the last.
    failure: Option<(Instant, Blind)>,
}

impl Guard {
    /// The addresses that are banned by force alone, as of some seconds ago at most.
    pub(super) async fn protected(&self) -> Result<Protected, Blind> {
        self.known.lock().await.protected(self).await
    }

    /// The same for bans by hand, of whoever has that session: as of some minutes ago at most, where
    /// nobody can tell now.
    pub(super) async fn by_hand(&self, session: Option<Session>) -> Result<Protected, Blind> {
        let mut known = self.known.lock().await;
        let protected = match known.protected(self).await {
            Ok(protected) => protected,
            Err(blind) => {
                let answer = known.answer.as_ref();
                let kept = answer.filter(|(at, _)| at.elapsed() < OLDEST);
                kept.ok_or(blind)?.1.clone()
            }
        };
        Ok(protected.with(session))
    }

    /// Asks for the first time, if nobody has.
    pub(super) async fn begin(&self) {
        let mut known = self.known.lock().await;
        if known.answer.is_none() {
            // What comes of it is in the status.
            let _ = known.protected(self).await;
        }
    }

    /// Asks again where that was long ago, so that its state is known before it is needed.
    pub(super) async fn refresh(&self) {
        let mut known = self.known.lock().await;
        let answer = known.answer.as_ref();
        if known.failure.is_some() || answer.is_none_or(|(at, _)| at.elapsed() >= REFRESH) {
            // What comes of it is in the status.
            let _ = known.protected(self).await;
        }
    }

    /// How it goes.
    pub(super) fn status(&self) -> GuardStatus {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, GuardStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an answer, or why there is none; tells what has changed.
    fn note(&self, answer: Result<&Protected, &Blind>) {
        let mut status = self.locked();
        let before = status.error.take();
        match answer {
            Ok(protected) => {
                status.protected = protected.addresses();
                status.sessions_recorded = are_sessions_recorded();
                status.answered_at = Some(wall_clock_now());
                if before.is_some() {
                    info!("the guard can tell again whom not to ban");
                }
            }
            Err(Blind(why)) => {
                status.error = Some(why.clone());
                if before.is_none() {
                    warn!(
                        why,
                        "the guard cannot tell whom not to ban, so nobody is banned automatically: \
                         {why}"
                    );
                }
            }
        }
        if before.is_some() != status.error.is_some() || status.since == Timestamp::default() {
            status.since = wall_clock_now();
        }
    }
}

impl Known {
    async fn protected(&mut self, guard: &Guard) -> Result<Protected, Blind> {
        if let Some((at, blind)) = &self.failure {
            if at.elapsed() < RETRY {
                return Err(blind.clone());
            }
        } else if let Some((at, protected)) = &self.answer
            && at.elapsed() < MEMORY
        {
            return Ok(protected.clone());
        }
        let asked = Protected::ask(&mut self.asker).await;
        let asked = asked.map_err(|error| Blind(error.to_string()));
        guard.note(asked.as_ref());
        match &asked {
            Ok(protected) => {
                self.failure = None;
                self.answer = Some((Instant::now(), protected.clone()));
            }
            Err(blind) => self.failure = Some((Instant::now(), blind.clone())),
        }
        asked
    }
}
