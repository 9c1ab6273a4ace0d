//! Counts open connections by owner, and keeps the owners with the most.
//!
//! The kernel stores a keyed hash of an owner, its place. So each listed connection goes to the place at which the
//! kernel's program counts it, and the address of any connection there tells the owner. 100 000 connections of as
//! many addresses take 8 ms of a CPU with one limit, and 83 ms with eight.

use std::{
    array,
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use limiter_common::connection::{Ends, MOST_LIMITS, Place, Places};

use crate::protocol::MOST_OWNERS;

/// The owners of all connections seen in this look. It grows with them; the result, [`OwnerSnapshot`], is bounded.
pub(super) struct OwnerCount<'e> {
    /// The connections that at least one limit counts.
    counted: u64,
    /// In the order of the policy's limits on connections: the number open at a place, and the ends of one of them.
    limits: [HashMap<Place, (u64, &'e Ends)>; MOST_LIMITS],
}

/// The owners with the most open connections, as of the last look.
#[derive(Default)]
pub(in crate::daemon) struct Owners(Mutex<Option<OwnerSnapshot>>);

/// The result of a look.
#[derive(Clone)]
pub(in crate::daemon) struct OwnerSnapshot {
    /// The number of the policy that it used.
    pub(in crate::daemon) generation: u64,
    pub(in crate::daemon) at: Instant,
    /// The open connections that at least one limit counts.
    pub(in crate::daemon) counted: u64,
    /// In the order of the policy's limits on connections; entries beyond them are empty.
    pub(in crate::daemon) limits: [LimitOwners; MOST_LIMITS],
}

/// The connections that one limit counts, and their owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::daemon) struct LimitOwners {
    pub(in crate::daemon) open: u64,
    /// The number of owners with open connections.
    pub(in crate::daemon) owners: u64,
    /// The owners with the most connections, the most first; at most [`MOST_OWNERS`].
    pub(in crate::daemon) most: Vec<Owner>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::daemon) struct Owner {
    pub(in crate::daemon) open: u64,
    /// The [`Place`] where they are counted. It breaks ties between owners with equal numbers.
    pub(in crate::daemon) place: u64,
    /// The peer's address and the host's own of one of them.
    pub(in crate::daemon) ends: [IpAddr; 2],
}

impl<'e> OwnerCount<'e> {
    pub(super) fn new() -> Self {
        Self {
            counted: 0,
            limits: array::from_fn(|_| HashMap::new()),
        }
    }

    pub(super) fn add(&mut self, ends: &'e Ends, places: &Places) {
        self.counted += u64::from(*places != Places::NONE);
        for (limit, place) in self.limits.iter_mut().zip(places.0) {
            if place != 0 {
                limit.entry(Place(place)).or_insert((0, ends)).0 += 1;
            }
        }
    }

    /// Returns the owners with the most, by the policy with that number.
    pub(super) fn snapshot(&self, generation: u64, at: Instant) -> OwnerSnapshot {
        OwnerSnapshot {
            generation,
            at,
            counted: self.counted,
            limits: array::from_fn(|index| of_limit(&self.limits[index])),
        }
    }
}

impl Owners {
    pub(super) fn set(&self, found: OwnerSnapshot) {
        *self.locked() = Some(found);
    }

    /// Returns the result of the last look by the policy with that number.
    pub(in crate::daemon) fn of(&self, generation: u64) -> Option<OwnerSnapshot> {
        let found = self.locked();
        found.clone().filter(|found| found.generation == generation)
    }

    fn locked(&self) -> MutexGuard<'_, Option<OwnerSnapshot>> {
        // The value is replaced as a whole, so a panic elsewhere leaves it valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn of_limit(owners: &HashMap<Place, (u64, &Ends)>) -> LimitOwners {
    let mut most = BinaryHeap::with_capacity(MOST_OWNERS + 1);
    let mut all = 0;
    for (place, (open, ends)) in owners {
        all += open;
        let is_full = most.len() == MOST_OWNERS;
        let is_less =
            |Reverse(least): &Reverse<Owner>| (*open, place.0) < (least.open, least.place);
        // With many owners, nearly all end here.
        if is_full && most.peek().is_some_and(is_less) {
            continue;
        }
        most.push(Reverse(Owner {
            open: *open,
            place: place.0,
            ends: [ends.peer().into(), ends.own().into()],
        }));
        if is_full {
            most.pop();
        }
    }
    let most = most.into_sorted_vec().into_iter();
    LimitOwners {
        open: all,
        owners: owners.len() as u64,
        most: most.map(|Reverse(owner)| owner).collect(),
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

    fn places<const N: usize>(first: [u64; N]) -> Places {
        let mut places = Places::NONE;
        places.0[..N].copy_from_slice(&first);
        places
    }

    #[test]
    fn each_limit_has_its_owners() {
        let ends: Vec<_> = (0..6).map(ends).collect();
        let mut count = OwnerCount::new();
        for (ends, at) in ends
            .iter()
            .zip([[7, 1], [7, 1], [8, 1], [9, 1], [9, 0], [9, 1]])
        {
            count.add(ends, &places(at));
        }
        let found = count.snapshot(1, Instant::now());
        assert_eq!(found.counted, 6);
        let [first, second, others @ ..] = found.limits;
        let shown = |limit: &LimitOwners| -> Vec<_> {
            let owners = limit.most.iter();
            let shown = owners.map(|owner| (owner.open, owner.place, owner.ends[0].to_string()));
            shown.collect()
        };
        let owner = |open, place, peer: &str| (open, place, peer.to_owned());
        assert_eq!(
            shown(&first),
            [
                owner(3, 9, "10.0.0.3"),
                owner(2, 7, "10.0.0.0"),
                owner(1, 8, "10.0.0.2")
            ]
        );
        assert_eq!(shown(&second), [owner(5, 1, "10.0.0.0")]);
        assert_eq!((first.owners, second.owners), (3, 1));
        assert_eq!((first.open, second.open), (6, 5));
        assert!(others.iter().all(|limit| *limit == LimitOwners::default()));
    }

    /// An attacker may have many addresses.
    #[test]
    fn what_is_kept_is_bounded() {
        let ends: Vec<_> = (0..100_000).map(ends).collect();
        let mut count = OwnerCount::new();
        for (ends, place) in ends.iter().zip(1..) {
            count.add(ends, &places([place]));
        }
        // An owner of two is found among 100,000 owners of one.
        count.add(&ends[77_777], &places([77_778]));
        let [limit, ..] = count.snapshot(1, Instant::now()).limits;
        assert_eq!((limit.owners, limit.most.len()), (100_000, MOST_OWNERS));
        assert_eq!((limit.most[0].open, limit.most[0].place), (2, 77_778));
        assert!(limit.most[1..].iter().all(|owner| owner.open == 1));
    }

    #[test]
    fn another_policy_has_found_nothing_yet() {
        let owners = Owners::default();
        assert!(owners.of(1).is_none());
        owners.set(OwnerCount::new().snapshot(1, Instant::now()));
        assert!(owners.of(1).is_some());
        assert!(owners.of(2).is_none());
    }
}
