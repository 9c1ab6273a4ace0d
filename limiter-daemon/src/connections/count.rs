//! Counts open connections by key, and keeps the keys with the most.
//!
//! The kernel stores a keyed hash of a key, its count id. So each listed connection goes to the count id under which
//! the kernel's program counts it, and the address of any connection there tells the key. 100 000 connections of as
//! many addresses take 8 ms of a CPU with one limit, and 83 ms with eight.

use std::{
    array,
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use limiter_common::connection::{CountId, CountIds, Ends, MOST_LIMITS};

use limiter_protocol::MOST_KEYS;

/// The keys of all connections seen in this poll. It grows with them; the result, [`KeySnapshot`], is bounded.
pub(super) struct OpenByKey<'e> {
    /// The connections that at least one limit counts.
    counted: u64,
    /// In the order of the policy's limits on connections: the number open under a count id, and the ends of one of
    /// them.
    limits: [HashMap<CountId, (u64, &'e Ends)>; MOST_LIMITS],
}

/// The keys with the most open connections, as of the last poll.
#[derive(Default)]
pub(crate) struct BusyKeys(Mutex<Option<KeySnapshot>>);

/// The result of a poll.
#[derive(Clone)]
pub(crate) struct KeySnapshot {
    /// The number of the policy that it used.
    pub(crate) generation: u64,
    pub(crate) at: Instant,
    /// The open connections that at least one limit counts.
    pub(crate) counted: u64,
    /// In the order of the policy's limits on connections; entries beyond them are empty.
    pub(crate) limits: [LimitKeys; MOST_LIMITS],
}

/// The connections that one limit counts, and their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitKeys {
    pub(crate) open: u64,
    /// The number of keys with open connections.
    pub(crate) keys: u64,
    /// The keys with the most connections, the most first; at most [`MOST_KEYS`].
    pub(crate) most: Vec<BusyKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BusyKey {
    pub(crate) open: u64,
    /// The [`CountId`] under which they are counted. It breaks ties between keys with equal numbers.
    pub(crate) count_id: u64,
    /// The peer's address and the host's own of one of them.
    pub(crate) ends: [IpAddr; 2],
}

impl<'e> OpenByKey<'e> {
    pub(super) fn new() -> Self {
        Self {
            counted: 0,
            limits: array::from_fn(|_| HashMap::new()),
        }
    }

    pub(super) fn add(&mut self, ends: &'e Ends, count_ids: &CountIds) {
        self.counted += u64::from(*count_ids != CountIds::NONE);
        for (limit, count_id) in self.limits.iter_mut().zip(count_ids.0) {
            if count_id != 0 {
                limit.entry(CountId(count_id)).or_insert((0, ends)).0 += 1;
            }
        }
    }

    /// Returns the keys with the most, by the policy with that number.
    pub(super) fn snapshot(&self, generation: u64, at: Instant) -> KeySnapshot {
        KeySnapshot {
            generation,
            at,
            counted: self.counted,
            limits: array::from_fn(|index| of_limit(&self.limits[index])),
        }
    }
}

impl BusyKeys {
    pub(super) fn set(&self, found: KeySnapshot) {
        *self.locked() = Some(found);
    }

    /// Returns the result of the last poll by the policy with that number.
    pub(crate) fn of(&self, generation: u64) -> Option<KeySnapshot> {
        let found = self.locked();
        found.clone().filter(|found| found.generation == generation)
    }

    fn locked(&self) -> MutexGuard<'_, Option<KeySnapshot>> {
        // The value is replaced as a whole, so a panic elsewhere leaves it valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_limit(keys: &HashMap<CountId, (u64, &Ends)>) -> LimitKeys {
    let mut most = BinaryHeap::with_capacity(MOST_KEYS + 1);
    let mut all = 0;
    for (count_id, (open, ends)) in keys {
        all += open;
        let is_full = most.len() == MOST_KEYS;
        let is_less =
            |Reverse(least): &Reverse<BusyKey>| (*open, count_id.0) < (least.open, least.count_id);
        // With many keys, nearly all end here.
        if is_full && most.peek().is_some_and(is_less) {
            continue;
        }
        most.push(Reverse(BusyKey {
            open: *open,
            count_id: count_id.0,
            ends: [ends.peer().into(), ends.own().into()],
        }));
        if is_full {
            most.pop();
        }
    }
    let most = most.into_sorted_vec().into_iter();
    LimitKeys {
        open: all,
        keys: keys.len() as u64,
        most: most.map(|Reverse(key)| key).collect(),
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::address::Address;

    use super::*;

    const OWN: Address = Address::v4([192, 0, 2, 1]);

    fn ends(number: u32) -> Ends {
        let [_, second, third, fourth] = number.to_be_bytes();
        let peer = Address::v4([10, second, third, fourth]);
        Ends::new(&peer, 1_000, &OWN, 443)
    }

    fn count_ids<const N: usize>(first: [u64; N]) -> CountIds {
        let mut count_ids = CountIds::NONE;
        count_ids.0[..N].copy_from_slice(&first);
        count_ids
    }

    #[test]
    fn each_limit_has_its_keys() {
        let ends: Vec<_> = (0..6).map(ends).collect();
        let mut count = OpenByKey::new();
        for (ends, at) in ends
            .iter()
            .zip([[7, 1], [7, 1], [8, 1], [9, 1], [9, 0], [9, 1]])
        {
            count.add(ends, &count_ids(at));
        }
        let found = count.snapshot(1, Instant::now());
        assert_eq!(found.counted, 6);
        let [first, second, others @ ..] = found.limits;
        let shown = |limit: &LimitKeys| -> Vec<_> {
            let keys = limit.most.iter();
            let shown = keys.map(|key| (key.open, key.count_id, key.ends[0].to_string()));
            shown.collect()
        };
        let key = |open, count_id, peer: &str| (open, count_id, peer.to_owned());
        assert_eq!(
            shown(&first),
            [
                key(3, 9, "10.0.0.3"),
                key(2, 7, "10.0.0.0"),
                key(1, 8, "10.0.0.2")
            ]
        );
        assert_eq!(shown(&second), [key(5, 1, "10.0.0.0")]);
        assert_eq!((first.keys, second.keys), (3, 1));
        assert_eq!((first.open, second.open), (6, 5));
        assert!(others.iter().all(|limit| *limit == LimitKeys::default()));
    }

    /// An attacker may have many addresses.
    #[test]
    fn what_is_kept_is_bounded() {
        let ends: Vec<_> = (0..100_000).map(ends).collect();
        let mut count = OpenByKey::new();
        for (ends, count_id) in ends.iter().zip(1..) {
            count.add(ends, &count_ids([count_id]));
        }
        // A key with two is found among 100,000 keys with one.
        count.add(&ends[77_777], &count_ids([77_778]));
        let [limit, ..] = count.snapshot(1, Instant::now()).limits;
        assert_eq!((limit.keys, limit.most.len()), (100_000, MOST_KEYS));
        assert_eq!((limit.most[0].open, limit.most[0].count_id), (2, 77_778));
        assert!(limit.most[1..].iter().all(|key| key.open == 1));
    }

    #[test]
    fn another_policy_has_found_nothing_yet() {
        let keys = BusyKeys::default();
        assert!(keys.of(1).is_none());
        keys.set(OpenByKey::new().snapshot(1, Instant::now()));
        assert!(keys.of(1).is_some());
        assert!(keys.of(2).is_none());
    }
}
