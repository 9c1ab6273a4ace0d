//! Tables of the effect of each kind of arrival, step by step.

use limiter_common::{
    address::Address,
    sieve::{Geometry, ListedSource, Sieve, put_back},
};

use super::{HASH_KEY, InMemory, address, sieve};

const SECOND: u64 = 1_000_000_000;

/// Arrivals: the source, the second, and the list that the source is in afterwards.
type Arrivals<'a> = &'a [(u32, u64, u32)];

/// The lists that are not empty at the end, with each source and its count.
type RemainingSources<'a> = &'a [(usize, &'a [(u32, u32)])];

fn check(sieve: Sieve, arrivals: Arrivals<'_>, left: RemainingSources<'_>) {
    check_in(&InMemory::new(sieve), arrivals, left);
}

fn check_in(memory: &InMemory, arrivals: Arrivals<'_>, left: RemainingSources<'_>) {
    for (step, (source, second, list)) in arrivals.iter().enumerate() {
        let score = memory.score(&address(*source), second * SECOND);
        assert_eq!(score, *list, "step {step}: {source} at {second} s");
    }
    let lists = &memory.lists()[0];
    for (number, list) in lists.iter().enumerate() {
        let expected = left.iter().find(|(wanted, _)| *wanted == number);
        let expected: Vec<(Address, u32)> = expected
            .map_or(&[][..], |(_, entries)| *entries)
            .iter()
            .map(|(source, count)| (address(*source), *count))
            .collect();
        let found: Vec<_> = list.iter().map(|one| (one.key, one.count)).collect();
        assert_eq!(found, expected, "list {number}");
    }
}

#[test]
fn capacities_halve_from_list_to_list() {
    // By hand: N, size, and the capacities of the lists from 0 on.
    for (buckets, size, capacities) in [
        (1, 2, &[4, 4][..]),
        (1, 5, &[32, 32]),
        (2, 3, &[8, 4, 8]),
        (4, 6, &[64, 8, 16, 32, 64]),
        (
            10,
            15,
            &[
                32_768, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768,
            ],
        ),
    ] {
        let geometry = Geometry::new(buckets, size, 1);
        let found: Vec<_> = (0..=buckets).map(|list| geometry.capacity(list)).collect();
        assert_eq!(found, capacities);
        // And the starts of lists, one for each and one for the free list.
        let all = capacities.iter().sum::<u32>() + buckets + 2;
        assert_eq!(geometry.entries(), all);
        assert!(geometry.chains() >= all / 2);
    }
    let policy_s = Geometry::new(99, 100, 1);
    assert_eq!(policy_s.capacity(1) << 6, policy_s.capacity(7));
}

#[test]
fn as_many_shards_as_cpus_but_four_of_each_list_in_each() {
    for (buckets, size, cpus, shards) in [
        (10, 15, 1, 1),
        (10, 15, 2, 2),
        (10, 15, 3, 4),
        (10, 15, 16, 16),
        (10, 15, 17, 16),
        (10, 15, 1024, 16),
        (10, 11, 64, 1),
        (1, 2, 8, 1),
        (1, 4, 8, 4),
    ] {
        let geometry = Geometry::new(buckets, size, cpus);
        assert_eq!(geometry.shards(), shards, "{geometry:?}");
        assert!(geometry.capacity(1) >= 4, "{geometry:?}");
        let one = Geometry::new(buckets, size, 1);
        for list in 0..=buckets {
            let together = geometry.capacity(list) * geometry.shards();
            assert_eq!(together, one.capacity(list));
        }
    }
}

#[test]
fn a_new_source_enters_the_entry_list() {
    check(
        sieve(3, 4),
        &[(1, 0, 3), (2, 0, 3), (3, 0, 3)],
        &[(3, &[(3, 1), (2, 1), (1, 1)])],
    );
}

#[test]
fn hits_lead_down_while_there_is_room() {
    check(
        sieve(3, 4),
        &[
            (1, 0, 3),
            (1, 0, 2),
            (1, 0, 1),
            // List 1 is the last.
            (1, 0, 1),
            (2, 0, 3),
            (2, 0, 2),
            (1, 0, 1),
        ],
        &[(1, &[(1, 5)]), (2, &[(2, 2)])],
    );
}

#[test]
fn a_hit_in_list_1_moves_its_source_to_the_head() {
    check(
        sieve(1, 2),
        &[(1, 0, 1), (2, 0, 1), (3, 0, 1), (1, 0, 1)],
        &[(1, &[(1, 2), (3, 1), (2, 1)])],
    );
}

/// List 1 is full of sources with two hits each.
const FULL: Arrivals<'_> = &[
    (1, 0, 2),
    (1, 0, 1),
    (2, 0, 2),
    (2, 0, 1),
    (3, 0, 2),
    (3, 0, 1),
    (4, 0, 2),
    (4, 0, 1),
];

#[test]
fn a_source_as_busy_as_the_last_below_takes_its_place() {
    let arrivals = [FULL, &[(5, 0, 2), (6, 0, 2), (5, 0, 1)]].concat();
    check(
        sieve(2, 3),
        &arrivals,
        &[
            (1, &[(5, 2), (4, 2), (3, 2), (2, 2)]),
            (2, &[(1, 2), (6, 1)]),
        ],
    );
}

#[test]
fn a_source_less_busy_than_the_last_below_stays() {
    // 1 has three hits, and all others of list 1 were hit after it.
    let again = [(1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 0, 1)];
    let arrivals = [FULL, &again, &[(5, 0, 2), (6, 0, 2), (5, 0, 2)]].concat();
    check(
        sieve(2, 3),
        &arrivals,
        &[
            (1, &[(4, 3), (3, 3), (2, 3), (1, 3)]),
            (2, &[(6, 1), (5, 2)]),
        ],
    );
}

#[test]
fn a_full_entry_list_forgets_its_last() {
    check(
        sieve(1, 2),
        &[
            (1, 0, 1),
            (2, 0, 1),
            (3, 0, 1),
            (4, 0, 1),
            (1, 0, 1),
            (5, 0, 1),
            // 2 was forgotten and starts over; 3 is forgotten.
            (2, 0, 1),
        ],
        &[(1, &[(2, 1), (5, 1), (1, 2), (4, 1)])],
    );
}

#[test]
fn an_aged_source_restarts_with_an_eighth_of_its_hits() {
    let aging = Sieve {
        max_age_ns: 10 * SECOND,
        ..sieve(3, 4)
    };
    let young = [(1, 0, 3), (1, 0, 2), (1, 0, 1)];
    let hits = [(1, 10, 1); 14];
    // 17 hits, within the ten seconds; then the eighteenth, which does not count.
    check(aging, &[&young[..], &hits].concat(), &[(1, &[(1, 17)])]);
    let old = [(1, 11, 3)];
    check(
        aging,
        &[&young[..], &hits, &old].concat(),
        &[(3, &[(1, 2)])],
    );
    // The age counts from then on.
    let later = [(1, 21, 2), (1, 22, 3)];
    check(
        aging,
        &[&young[..], &hits, &old, &later].concat(),
        &[(3, &[(1, 0)])],
    );
}

#[test]
fn aging_into_a_full_entry_list_forgets_its_last() {
    let aging = Sieve {
        max_age_ns: 10 * SECOND,
        ..sieve(2, 3)
    };
    let others: Vec<_> = (11..19).map(|source| (source, 5, 2)).collect();
    let arrivals = [&[(1, 0, 2), (1, 0, 1)][..], &others, &[(1, 11, 2)]].concat();
    let left = [
        (1, 0),
        (18, 1),
        (17, 1),
        (16, 1),
        (15, 1),
        (14, 1),
        (13, 1),
        (12, 1),
    ];
    check(aging, &arrivals, &[(2, &left)]);
    // In the entry list itself no other source is forgotten for it.
    let full: Vec<_> = (11..19).map(|source| (source, 0, 2)).collect();
    let left = [
        (11, 0),
        (18, 1),
        (17, 1),
        (16, 1),
        (15, 1),
        (14, 1),
        (13, 1),
        (12, 1),
    ];
    check(aging, &[&full[..], &[(11, 11, 2)]].concat(), &[(2, &left)]);
}

#[test]
fn a_source_with_too_many_hits_is_blocked_for_long() {
    let blocking = |perma_limit, perma_threshold| Sieve {
        perma_limit,
        perma_threshold,
        ..sieve(3, 4)
    };
    // More hits than the limit, and in list 1.
    check(
        blocking(4, 1),
        &[(1, 0, 3), (1, 0, 2), (1, 0, 1), (1, 0, 1), (1, 0, 0)],
        &[(0, &[(1, 5)])],
    );
    // In list 2, as soon as it is there.
    check(
        blocking(1, 2),
        &[(1, 0, 3), (1, 0, 0), (1, 0, 0)],
        &[(0, &[(1, 3)])],
    );
    // From the entry list, at once; each hit leads to the head.
    check(
        blocking(0, 3),
        &[(1, 0, 0), (2, 0, 0), (1, 0, 0)],
        &[(0, &[(1, 2), (2, 1)])],
    );
    // With threshold 0 only list 0 would count, and it is empty.
    check(
        blocking(0, 0),
        &[(1, 0, 3), (1, 0, 2), (1, 0, 1), (1, 0, 1)],
        &[(1, &[(1, 4)])],
    );
}

#[test]
fn a_full_list_0_forgets_its_last() {
    let blocking = Sieve {
        perma_threshold: 1,
        ..sieve(1, 2)
    };
    check(
        blocking,
        &[(1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, 0)],
        &[(0, &[(5, 1), (4, 1), (3, 1), (2, 1)])],
    );
}

#[test]
fn list_0_has_its_own_maximum_age() {
    let blocking = Sieve {
        max_age_ns: 10 * SECOND,
        perma_max_age_ns: 100 * SECOND,
        perma_limit: 8,
        perma_threshold: 1,
        ..sieve(2, 3)
    };
    let hits = [(1, 0, 2), (1, 0, 1)];
    let more = [(1, 5, 1); 6];
    // It came to list 0 at 5 s.
    let arrivals = [&hits[..], &more, &[(1, 5, 0), (1, 105, 0)]].concat();
    check(blocking, &arrivals, &[(0, &[(1, 10)])]);
    let arrivals = [&arrivals[..], &[(1, 106, 2)]].concat();
    check(blocking, &arrivals, &[(2, &[(1, 1)])]);
    // If list 0 has no maximum age, aging takes no source out of it.
    let for_good = Sieve {
        perma_max_age_ns: 0,
        ..blocking
    };
    let arrivals = [&hits[..], &more, &[(1, 5, 0), (1, 1_000_000, 0)]].concat();
    check(for_good, &arrivals, &[(0, &[(1, 10)])]);
}

#[test]
fn an_aged_source_that_is_still_too_busy_returns_to_list_0() {
    let blocking = Sieve {
        perma_max_age_ns: 10 * SECOND,
        perma_limit: 1,
        perma_threshold: 1,
        ..sieve(1, 2)
    };
    let hits = [(1, 0, 1), (1, 0, 0), (1, 0, 0)];
    let full = [
        (2, 0, 1),
        (2, 0, 0),
        (4, 0, 1),
        (4, 0, 0),
        (5, 0, 1),
        (5, 0, 0),
    ];
    let more = [(1, 0, 0); 13];
    // An eighth of 16 hits is 2. List 0 is full and contains it, so no other source is forgotten.
    let arrivals = [&hits[..], &full, &more, &[(1, 11, 0)]].concat();
    check(
        blocking,
        &arrivals,
        &[(0, &[(1, 2), (5, 2), (4, 2), (2, 2)])],
    );
}

#[test]
fn counts_saturate() {
    let memory = InMemory::new(sieve(1, 2));
    let listed = ListedSource {
        key: address(1),
        count: u32::MAX,
        added_ns: 0,
    };
    let put = |list| {
        put_back(
            &memory.sieves.memory(),
            &memory.sieve,
            &HASH_KEY,
            list,
            &listed,
        )
    };
    assert!(!put(2), "there is no such list");
    assert!(put(1));
    assert!(!put(0), "it is there already");
    check_in(&memory, &[(1, 0, 1)], &[(1, &[(1, u32::MAX)])]);
}

#[test]
fn ipv6_is_scored_by_its_prefix() {
    let by_64 = Sieve {
        ipv6_mask_low: 0,
        ..sieve(2, 3)
    };
    let v6 = |low| Address::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 1], [low; 8]);
    assert_eq!(by_64.key(&v6(1)), by_64.key(&v6(2)));
    let v4 = Address::v4([192, 0, 2, 1]);
    assert_eq!(by_64.key(&v4), v4);
    // The same bits in another family are another source.
    let twin = Address::v6([192, 0, 2, 1, 0, 0, 0, 0], [0; 8]);
    let memory = InMemory::new(by_64);
    assert_eq!(memory.score(&v4, 0), 2);
    assert_eq!(memory.score(&twin, 0), 2);
    assert_eq!(memory.score(&v4, 0), 1);
}
