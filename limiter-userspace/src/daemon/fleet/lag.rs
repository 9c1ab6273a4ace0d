//! How long messages wait that are in the store's stream and that a node has not read.
//!
//! A node says in its sign of life which message it has read last. Whoever sees that remembers when it saw which
//! message as the newest, by its own monotonic clock. So no wall clock counts, neither a node's nor the store's: messages
//! are compared by their places in the stream alone.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use limiter_fleet::bans::StreamPlace;
use limiter_fleet_store::Position;

/// The most messages that are remembered: one each five seconds, for an hour.
const MOST: usize = 720;

/// The messages that were seen as the newest, in order, each with the time when that was first so.
#[derive(Default)]
pub(super) struct Newest(VecDeque<(StreamPlace, Instant)>);

impl Newest {
    /// Notes the newest message.
    pub(super) fn note(&mut self, newest: StreamPlace, now: Instant) {
        if self.0.back().is_some_and(|(last, _)| *last >= newest) {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((newest, now));
    }

    /// Returns for how long a message has been there that a node has not read, at most since the first that is
    /// remembered; 0: it has read all.
    pub(super) fn lag(&self, read: StreamPlace, now: Instant) -> Duration {
        let mut newest = self.0.iter();
        let unread = newest.find(|(place, _)| *place > read);
        unread.map_or(Duration::ZERO, |(_, since)| {
            now.saturating_duration_since(*since)
        })
    }
}

/// Returns a position as signs of life say it.
pub(super) const fn place(position: Position) -> StreamPlace {
    let (ms, number) = position.parts();
    StreamPlace { ms, number }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> StreamPlace {
        StreamPlace { ms, number: 0 }
    }

    #[test]
    fn the_oldest_unread_message_counts() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut newest = Newest::default();
        assert_eq!(newest.lag(at(0), begun), Duration::ZERO);
        newest.note(at(100), begun);
        // The store says the same again, or less: somebody has removed messages.
        newest.note(at(100), after(5));
        newest.note(at(90), after(10));
        newest.note(at(200), after(15));
        assert_eq!(newest.lag(at(99), after(20)), Duration::from_secs(20));
        assert_eq!(newest.lag(at(100), after(20)), Duration::from_secs(5));
        let next = StreamPlace { ms: 200, number: 1 };
        for read in [at(200), next, at(u64::MAX)] {
            assert_eq!(newest.lag(read, after(20)), Duration::ZERO);
        }
        for message in 0..2_000 {
            newest.note(at(300 + message), after(20 + message));
        }
        assert_eq!(newest.0.len(), MOST);
        assert_eq!(newest.lag(at(0), after(2_019)), Duration::from_secs(719));
    }
}
