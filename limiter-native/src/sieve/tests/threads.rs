//! Several threads at one sieve: it stays consistent.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use limiter_common::sieve::{CONTENDED, ChainLocation, Geometry, Sieve, SieveLists};
use limiter_policy::policy::SieveSizes;

use super::{HASH_KEY, InMemory, address, sieve};
use crate::{MemorySieves, SieveMemory};

const THREADS: u32 = 4;
const ARRIVALS: u32 = 100_000;

/// Checks that every used entry is in exactly one list, that its neighbours link to it, and that a
/// look-up of its address finds it if it holds one. Returns the sum of the counts.
fn assert_consistent(memory: &SieveMemory<'_>, sieve: &Sieve) -> u64 {
    let Geometry { list_count, .. } = sieve.geometry;
    let mut counts = 0;
    for shard in 0..sieve.geometry.shards() {
        let first = sieve.region.entries + shard * sieve.geometry.entries();
        let entry = |number: u32| &memory.entries[(first + number) as usize];
        let mut seen = HashSet::new();
        for list in 0..=sieve.geometry.free_list() {
            let mut length = 0;
            let mut number = list;
            loop {
                let next = entry(number).next(number);
                assert_eq!(entry(next).previous(next), number);
                number = next;
                if number == list {
                    break;
                }
                length += 1;
                assert!(seen.insert(number), "{number} is in two lists");
                assert_eq!(entry(number).list(), list);
                if list <= list_count {
                    let key = entry(number).key();
                    let location =
                        ChainLocation::new(&sieve.geometry, &sieve.region, &HASH_KEY, &key);
                    assert_eq!(location.entries, first, "it is in its shard");
                    let found = SieveLists::new(memory, first)
                        .find_list(location.heads + location.chain, &key);
                    assert_eq!(found, Some(list));
                    counts += u64::from(entry(number).count());
                }
            }
            assert_eq!(entry(list).count(), length, "the length of list {list}");
            assert!(list > list_count || length <= sieve.geometry.capacity(list));
        }
        let used = memory.shards[(sieve.region.shards + shard) as usize].used();
        assert_eq!(seen.len(), used as usize, "none is lost");
    }
    counts
}

#[test]
fn threads_leave_a_consistent_sieve() {
    for cpus in [1, 4] {
        let sieve = Sieve {
            max_age_ns: 5_000,
            perma_limit: 100,
            perma_threshold: 1,
            geometry: Geometry::new(3, 7, cpus),
            ..sieve(3, 7)
        };
        let sieves = MemorySieves::new(SieveSizes::of(&[sieve]));
        let memory = sieves.memory();
        let done = AtomicBool::new(false);
        let arrive = |thread: u32| {
            let mut random = fastrand::Rng::with_seed(thread.into());
            let mut counted = 0_u64;
            for now in 0..ARRIVALS {
                // Some sources are much busier than others.
                let source = random.u32(0..1_000) >> random.u32(0..9);
                let score = limiter_common::sieve::score(
                    &memory,
                    &sieve,
                    &HASH_KEY,
                    &address(source),
                    now.into(),
                );
                counted += u64::from(score & CONTENDED == 0);
            }
            counted
        };
        let read = || {
            while !done.load(Relaxed) {
                for shard in memory.snapshot(&sieve).shards {
                    // No list overflows in an exact snapshot.
                    for (number, list) in (0..).zip(&shard.lists) {
                        let room = sieve.geometry.capacity(number) as usize;
                        assert!(!shard.is_exact || list.len() <= room);
                    }
                }
            }
        };
        let counted: u64 = thread::scope(|scope| {
            let reader = scope.spawn(read);
            let arrive = &arrive;
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || arrive(thread)))
                .collect();
            let counted = threads.into_iter().map(|one| one.join().expect("no panic"));
            let counted = counted.sum();
            done.store(true, Relaxed);
            reader.join().expect("no panic");
            counted
        });
        assert!(counted > 0 && counted <= u64::from(THREADS * ARRIVALS));
        assert!(assert_consistent(&memory, &sieve) <= counted);
        let mut odd = memory
            .shards
            .iter()
            .filter(|shard| shard.sequence.get() % 2 == 1);
        assert!(odd.next().is_none(), "a lock is still held");
        let turns = memory.shards.iter().map(|shard| shard.sequence.get() / 2);
        assert_eq!(turns.sum::<u64>(), counted, "each lock counted one arrival");
        let exact = InMemory { sieve, sieves };
        exact.lists();
    }
}
