//! How long messages have been in the stream without a node having read them.
//!
//! A heartbeat names the last message that its node has read. The receiver remembers when it first saw each
//! message as the newest, by its own monotonic clock, and compares positions in the stream. So neither a
//! node's wall clock nor the store's matters.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use limiter_fleet::Position;

/// The most remembered messages: one each five seconds, for an hour.
const MOST: usize = 720;

/// The newest messages seen so far, in order, each with the time when it was first seen.
#[derive(Default)]
pub(super) struct Newest(VecDeque<(Position, Instant)>);

impl Newest {
    pub(super) fn record(&mut self, newest: Position, now: Instant) {
        if self.0.back().is_some_and(|(last, _)| *last >= newest) {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((newest, now));
    }

    /// Returns how long the oldest unread message has been there, as far as remembered; 0: the node has
    /// read all.
    pub(super) fn lag(&self, read: Position, now: Instant) -> Duration {
        let mut newest = self.0.iter();
        let unread = newest.find(|(position, _)| *position > read);
        unread.map_or(Duration::ZERO, |(_, since)| {
            now.saturating_duration_since(*since)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Position {
        Position { ms, number: 0 }
    }

    #[test]
    fn the_oldest_unread_message_counts() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut newest = Newest::default();
        assert_eq!(newest.lag(at(0), begun), Duration::ZERO);
        newest.record(at(100), begun);
        // An equal or lower position: messages were removed from the store.
        newest.record(at(100), after(5));
        newest.record(at(90), after(10));
        newest.record(at(200), after(15));
        assert_eq!(newest.lag(at(99), after(20)), Duration::from_secs(20));
        assert_eq!(newest.lag(at(100), after(20)), Duration::from_secs(5));
        let next = Position { ms: 200, number: 1 };
        for read in [at(200), next, at(u64::MAX)] {
            assert_eq!(newest.lag(read, after(20)), Duration::ZERO);
        }
        for message in 0..2_000 {
            newest.record(at(300 + message), after(20 + message));
        }
        assert_eq!(newest.0.len(), MOST);
        assert_eq!(newest.lag(at(0), after(2_019)), Duration::from_secs(719));
    }
}
