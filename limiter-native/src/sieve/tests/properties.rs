//! Any sequence of arrivals leaves the same lists as in the model.

use limiter_common::sieve::{Geometry, Sieve};
use proptest::prelude::*;

use super::{HASH_KEY, InMemory, address, model::Model, sieve};
use crate::MemorySieves;

/// Small enough that every list is full at times, with up to four shards.
fn any_sieve() -> impl Strategy<Value = Sieve> {
    let geometry = (1..5_u32, 1..4_u32, 1..5_u32)
        .prop_map(|(buckets, more, cpus)| Geometry::new(buckets, buckets + more, cpus));
    let age = || prop_oneof![Just(0), 1..200_u64];
    (geometry, age(), age(), 0..40_u32, 0..4_u32).prop_map(
        |(geometry, max_age_ns, perma_max_age_ns, perma_limit, perma_threshold)| Sieve {
            max_age_ns,
            perma_max_age_ns,
            perma_limit,
            perma_threshold,
            geometry,
            ..sieve(geometry.list_count, geometry.size)
        },
    )
}

/// The number of the arriving source, and the time since the previous arrival. Some sources are
/// much busier than others.
fn arrivals() -> impl Strategy<Value = Vec<(u32, u64)>> {
    let number = prop_oneof![0..4_u32, 0..20_u32, 0..300_u32];
    prop::collection::vec((number, 0..4_u64), 0..400)
}

proptest! {
    #[test]
    fn each_shard_is_a_sieve_of_its_share(sieve in any_sieve(), arrivals in arrivals()) {
        let memory = InMemory::new(sieve);
        let shards = 0..sieve.geometry.shards();
        let mut models: Vec<_> = shards.map(|_| Model::new(sieve)).collect();
        let mut now = 0;
        for (number, step) in arrivals {
            now += step;
            let key = address(number);
            let expected = models[memory.shard(&key)].hit(key, now);
            prop_assert_eq!(memory.score(&key, now), expected);
        }
        for (lists, model) in memory.lists().into_iter().zip(models) {
            let expected: Vec<Vec<_>> = model.lists.into_iter().map(Vec::from).collect();
            prop_assert_eq!(lists, expected);
        }
    }

    #[test]
    fn what_is_put_back_is_the_same(sieve in any_sieve(), arrivals in arrivals()) {
        let memory = InMemory::new(sieve);
        for (now, (number, _)) in (0..).zip(arrivals) {
            memory.score(&address(number), now);
        }
        let mut again = InMemory::new(sieve);
        let left_out = again.sieves.memory().restore(&sieve, &HASH_KEY, &memory.snapshot());
        prop_assert_eq!(left_out, 0);
        prop_assert_eq!(again.lists(), memory.lists());
        // The restored sieve also continues in the same way.
        for number in 0..50 {
            let (key, now) = (address(number), 10_000);
            prop_assert_eq!(again.score(&key, now), memory.score(&key, now));
        }
        prop_assert_eq!(again.lists(), memory.lists());
        again.sieves = MemorySieves::default();
        prop_assert!(again.snapshot().shards.is_empty());
    }
}
