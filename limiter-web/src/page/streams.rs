//! The open event streams. Their number is small, so streaming costs little. If there are too many, the oldest
//! stream of the client with the most streams ends: a client that opens many cannot keep others out.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Mutex, PoisonError},
};

use tokio::sync::oneshot;

use crate::http::Peer;

/// The most streams at once.
const MOST: usize = 16;

#[derive(Default)]
pub(super) struct Streams {
    /// Oldest first.
    open: Mutex<Vec<OpenStream>>,
}

struct OpenStream {
    peer: Peer,
    /// Dropping this ends the stream.
    end: oneshot::Sender<Infallible>,
}

impl Streams {
    /// Adds a stream. It is to end once the returned receiver resolves.
    pub(super) fn add(&self, peer: Peer) -> oneshot::Receiver<Infallible> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, ended) = oneshot::channel();
        open.retain(|one| !one.end.is_closed());
        open.push(OpenStream { peer, end });
        if open.len() > MOST {
            let mut counts = HashMap::new();
            for one in &*open {
                *counts.entry(one.peer).or_insert(0) += 1;
            }
            let most = counts.values().max().copied();
            let gives_way = open
                .iter()
                .position(|one| counts.get(&one.peer).copied() == most);
            gives_way.map(|number| open.remove(number));
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the indices of open streams.
    fn open(all: &mut [oneshot::Receiver<Infallible>]) -> Vec<usize> {
        let is_open = |one: &mut oneshot::Receiver<Infallible>| {
            matches!(one.try_recv(), Err(oneshot::error::TryRecvError::Empty))
        };
        let numbered = all.iter_mut().enumerate();
        numbered
            .filter_map(|(number, one)| is_open(one).then_some(number))
            .collect()
    }

    #[test]
    fn who_opens_them_all_keeps_nobody_out() {
        let (crowd, operator) = (Peer::User(Some(1_000)), Peer::User(Some(0)));
        let streams = Streams::default();
        let mut all: Vec<_> = (0..MOST).map(|_| streams.add(crowd)).collect();
        all.push(streams.add(operator));
        assert_eq!(open(&mut all), (1..=MOST).collect::<Vec<_>>());
        // Even if many more come.
        all.extend((0..100).map(|_| streams.add(crowd)));
        let left = open(&mut all);
        assert_eq!(left.len(), MOST);
        assert!(left.contains(&MOST), "the operator's is there");
    }

    #[test]
    fn of_many_with_one_each_the_oldest_gives_way() {
        let streams = Streams::default();
        let mut all: Vec<_> = (0..=MOST)
            .map(|number| streams.add(Peer::User(u32::try_from(number).ok())))
            .collect();
        assert_eq!(open(&mut all), (1..=MOST).collect::<Vec<_>>());
    }

    #[test]
    fn what_has_ended_does_not_count() {
        let streams = Streams::default();
        let peer = Peer::User(None);
        drop((0..MOST).map(|_| streams.add(peer)).collect::<Vec<_>>());
        let mut all: Vec<_> = (0..MOST).map(|_| streams.add(peer)).collect();
        assert_eq!(open(&mut all).len(), MOST);
    }
}
