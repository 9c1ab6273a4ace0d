//! Whether a server answers soon enough for letters.

use std::time::Duration;

use limiter_fleet_store::{News, WAIT};
use thiserror::Error;
use tokio::time::Instant;

use super::patience::in_time;

/// After what time an answer is late. A node that asks for a budget waits for half a second, and then asks anew: by a
/// slower server, nodes would lend to each other in vain.
const LATE: Duration = Duration::from_millis(250);

/// How long it may be unknown how soon it answers.
const UNKNOWN: Duration = Duration::from_secs(1);

/// A server is late.
#[derive(Debug, Error)]
#[error("it answers after more than 250 ms: what nodes say by it comes too late")]
pub(super) struct Late;

/// How soon a server answers.
pub(super) struct Pace {
    is_late: bool,
    noted_at: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            is_late: false,
            noted_at: Instant::now(),
        }
    }

    pub(super) const fn is_late(&self) -> bool {
        self.is_late
    }

    /// Waits for an answer that the server gives at once.
    pub(super) async fn time<T, E: ToString>(
        &mut self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        let begun = Instant::now();
        let done = in_time(work).await?;
        self.note(begun.elapsed());
        Ok(done)
    }

    /// Waits for a read, which waits for letters; returns whether it does not say enough.
    pub(super) async fn time_read<E: ToString>(
        &mut self,
        read: impl Future<Output = Result<News, E>>,
    ) -> Result<(News, bool), String> {
        let begun = Instant::now();
        let news = in_time(read).await?;
        let took = begun.elapsed();
        if news.next.is_none() {
            self.note(took.saturating_sub(WAIT));
        } else if took <= LATE / 2 {
            self.note(took);
        }
        // Else nobody knows for how long the server waited for a letter.
        let is_old = self.is_late || self.noted_at.elapsed() > UNKNOWN;
        let is_unknown = self.noted_at <= begun && is_old;
        Ok((news, is_unknown))
    }

    /// Notes how long an answer took. A server that was late is so until an answer takes half as long, or the log
    /// would say again and again that it has changed.
    fn note(&mut self, took: Duration) {
        self.is_late = took > if self.is_late { LATE / 2 } else { LATE };
        self.noted_at = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use limiter_fleet_store::Position;
    use tokio::time::{pause, sleep};

    use super::*;

    /// Has a read take a time, and bring letters or none; returns whether that does not say enough.
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
        // A letter may have come late.
        assert!(!read(&mut pace, 900, true).await && !pace.is_late());
        assert!(read(&mut pace, 900, true).await && !pace.is_late());
        answer(&mut pace, 1_000).await;
        assert!(pace.is_late());
        assert!(read(&mut pace, 1_000, true).await && pace.is_late());
        // Half as long is soon again.
        answer(&mut pace, 200).await;
        assert!(pace.is_late());
        answer(&mut pace, 100).await;
        assert!(!pace.is_late());
        answer(&mut pace, 200).await;
        assert!(!pace.is_late());
    }
}
