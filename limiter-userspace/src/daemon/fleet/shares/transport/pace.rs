//! Whether a server answers fast enough for messages.

use std::time::Duration;

use limiter_fleet_store::{News, WAIT};
use thiserror::Error;
use tokio::time::Instant;

use super::patience::in_time;

/// An answer after this time is late. A node that requests a share waits for half a second before it sends a
/// request again: over a slower server, nodes would lend to each other in vain.
const LATE: Duration = Duration::from_millis(250);

/// How long a server's speed may stay unknown.
const UNKNOWN: Duration = Duration::from_secs(1);

#[derive(Debug, Error)]
#[error("it answers after more than 250 ms: messages through it come too late")]
pub(super) struct Late;

/// A server's speed.
pub(super) struct Pace {
    is_late: bool,
    recorded_at: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            is_late: false,
            recorded_at: Instant::now(),
        }
    }

    pub(super) const fn is_late(&self) -> bool {
        self.is_late
    }

    /// Times a command that the server answers at once.
    pub(super) async fn time<T, E: ToString>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        let begun = Instant::now();
        let done = in_time(work).await?;
        self.record(begun.elapsed());
        Ok(done)
    }

    /// Waits for a read, which may block until there are messages; returns whether the speed is unknown.
    pub(super) async fn time_read<E: ToString>(
        &mut self,
        read: impl Future<Output = Result<News, E>>,
    ) -> Result<(News, bool), String> {
        let begun = Instant::now();
        let news = in_time(read).await?;
        let took = begun.elapsed();
        if news.next.is_none() {
            self.record(took.saturating_sub(WAIT));
        } else if took <= LATE / 2 {
            self.record(took);
        }
        // Without messages, the server's own waiting time is unknown.
        let is_old = self.is_late || self.recorded_at.elapsed() > UNKNOWN;
        let is_unknown = self.recorded_at <= begun && is_old;
        Ok((news, is_unknown))
    }

    /// Records the time of an answer. A late server stays late until an answer takes at most half the
    /// limit: otherwise the log could alternate.
    fn record(&mut self, took: Duration) {
        self.is_late = took > if self.is_late { LATE / 2 } else { LATE };
        self.recorded_at = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use limiter_fleet_store::Position;
    use tokio::time::{pause, sleep};

    use super::*;

    /// Simulates a read of some length, with or without messages; returns whether the speed is unknown.
    async fn read(pace: &mut Pace, ms: u64, has_letters: bool) -> bool {
        let read = async {
            sleep(Duration::from_millis(ms)).await;
            let next = has_letters.then(Position::default);
            let messages = Vec::new();
            Ok::<_, String>(News { messages, next })
        };
        pace.time_read(read).await.unwrap().1
    }

    async fn answer(pace: &mut Pace, ms: u64) {
        let answer = async {
            sleep(Duration::from_millis(ms)).await;
            Ok::<_, String>(())
        };
        pace.time(answer).await.unwrap();
    }

    #[tokio::test]
    async fn a_read_says_how_soon_a_server_answers_if_it_waited_for_nothing() {
        pause();
        let mut pace = Pace::new();
        assert!(!read(&mut pace, 1_050, false).await && !pace.is_late());
        assert!(!read(&mut pace, 1_400, false).await && pace.is_late());
        assert!(!read(&mut pace, 20, true).await && !pace.is_late());
        // The read may have waited for the message.
        assert!(!read(&mut pace, 900, true).await && !pace.is_late());
        assert!(read(&mut pace, 900, true).await && !pace.is_late());
        answer(&mut pace, 1_000).await;
        assert!(pace.is_late());
        assert!(read(&mut pace, 1_000, true).await && pace.is_late());
        // Half the limit is fast again.
        answer(&mut pace, 200).await;
        assert!(pace.is_late());
        answer(&mut pace, 100).await;
        assert!(!pace.is_late());
        answer(&mut pace, 200).await;
        assert!(!pace.is_late());
    }
}
