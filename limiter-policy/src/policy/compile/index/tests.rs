use std::{cell::Cell, collections::BTreeSet};

use limiter_common::{
    key::BucketKey,
    limit::LimitId,
    name_hash::NameKeys,
    policy::NameSlot,
    policy::{Class, Features, LimitEntry, MOST_STEPS, Tables, search},
    sieve::{Sieve, SieveUse},
    standing::Reserves,
    strategy::{
        Parameters,
        gcra::{CurrentRate, Parts},
    },
};
use proptest::prelude::*;

use super::{grid::halves, *};

/// The most bytes that the tables may take per range: a cell and its content.
const MOST_BYTES: usize = 128;

/// The number of bits of a dimension's values, their position, and the most steps of a look-up.
#[derive(Clone, Copy, Debug)]
struct Dimension {
    bits: u32,
    shift: u32,
    most_steps: u32,
}

const V4: Dimension = Dimension {
    bits: 32,
    shift: 96,
    most_steps: 9,
};

const V6: Dimension = Dimension {
    bits: 128,
    shift: 0,
    most_steps: MOST_STEPS,
};

const PORT: Dimension = Dimension {
    bits: 16,
    shift: 0,
    most_steps: 6,
};

impl Dimension {
    const fn last(self) -> u128 {
        u128::MAX >> (128 - self.bits) << self.shift
    }
}

/// Tables with only nodes, which count the steps of each look-up.
struct CountingTables {
    indexed: IndexTables,
    steps: Cell<u32>,
}

impl Tables for CountingTables {
    fn features(&self) -> &Features {
        &Features::EMPTY
    }

    fn current_rate(&self, _: LimitId) -> CurrentRate {
        CurrentRate::NONE
    }

    fn key_share(&self, _: &BucketKey, _: u64, _: u64) -> Option<Parts> {
        None
    }

    fn record_demand(&self, _: &BucketKey) {}

    fn limit(&self, _: u32) -> Option<&LimitEntry> {
        None
    }

    fn node(&self, index: u32) -> Option<&Node> {
        self.steps.update(|count| count + 1);
        self.indexed.nodes.get(index as usize)
    }

    fn stretch(&self, index: u32) -> Option<&Stretch> {
        self.indexed.stretches.get(index as usize)
    }

    fn child(&self, index: u32) -> Option<&Child> {
        self.indexed.children.get(index as usize)
    }

    fn class(&self, _: u32) -> Option<&Class> {
        None
    }

    fn rate(&self, _: u32) -> Option<&Parameters> {
        None
    }

    fn reserves(&self, _: u32) -> Option<&Reserves> {
        None
    }

    fn mask(&self, _: u32) -> Option<&u64> {
        None
    }

    fn name_keys(&self) -> &NameKeys {
        &NameKeys::NONE
    }

    fn name(&self, _: u32) -> Option<&NameSlot> {
        None
    }

    fn sieve(&self, _: u32) -> Option<&Sieve> {
        None
    }

    fn sieve_use(&self, _: u32) -> Option<&SieveUse> {
        None
    }
}

impl CountingTables {
    /// Returns the value, and the number of steps of its look-up.
    fn look_up(&self, from: Child, value: u128) -> (u32, u32) {
        self.steps.set(0);
        let (high, low) = halves(value);
        let found = search(self, from, high, low);
        (found, self.steps.get())
    }
}

/// Looks up the edges and other values of each range, or of a sample from very many. Returns the maximum
/// number of steps.
fn check(dimension: Dimension, starts: &BTreeSet<u128>) -> u32 {
    let range = |start, value| Range { start, value };
    let mut ranges = vec![range(0, 1_000)];
    let inner = starts.iter().filter(|start| **start > 0);
    ranges.extend(
        (1_001..)
            .zip(inner)
            .map(|(value, start)| range(*start, value)),
    );
    // Ranges before and after, as from neighbouring dimensions.
    let others = [range(0, 7), range(1, 8), range(1 << 127, 9)];
    let mut indexed = IndexTables::default();
    indexed.add(&others);
    let from = indexed.add(&ranges);
    indexed.add(&others);
    let bytes = size_of_val(&indexed.nodes[..])
        + size_of_val(&indexed.stretches[..])
        + size_of_val(&indexed.children[..]);
    assert!(
        bytes <= 1024 + MOST_BYTES * ranges.len(),
        "{bytes} bytes for {} ranges",
        ranges.len()
    );
    let tables = CountingTables {
        indexed,
        steps: Cell::default(),
    };
    let one = 1 << dimension.shift;
    let mut most = 0;
    let step = ranges.len().div_ceil(100_000);
    for (number, this) in ranges.iter().enumerate().step_by(step) {
        let first = this.start;
        let next = ranges.get(number + 1).map(|next| next.start);
        let last = next.map_or(dimension.last(), |next| next - one);
        for value in [first, first.midpoint(last) & dimension.last(), last] {
            let (found, steps) = tables.look_up(from, value);
            assert_eq!(found, this.value, "{value:#x} in {dimension:?}");
            most = most.max(steps);
        }
    }
    assert!(
        most <= dimension.most_steps,
        "{most} steps in {dimension:?}"
    );
    most
}

/// Returns a SplitMix64 number made of two halves, for sets too large for proptest.
fn random(number: u64) -> u128 {
    let word = |seed: u64| {
        let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    u128::from(word(2 * number + 1)) << 64 | u128::from(word(2 * number + 2))
}

/// Returns both edges of so many random prefixes, all in one prefix of `outer` bits.
fn prefixes(dimension: Dimension, count: u64, outer: u32, length: u32) -> BTreeSet<u128> {
    let inner = u128::MAX.checked_shr(outer).unwrap_or(0);
    let hosts = u128::MAX.checked_shr(length).unwrap_or(0);
    let outside = 0x2a10_0db8_0102_0304_0506_0708_090a_0b0c & !inner;
    let first = (0..count).map(|number| (outside | random(number) & inner) & !hosts);
    let edges = first.flat_map(|first| [Some(first), (first | hosts).checked_add(1)]);
    let edges = edges.flatten().filter(|edge| *edge <= dimension.last());
    edges.collect()
}

#[test]
fn large_sets_take_few_steps() {
    for (dimension, outer, length, most) in [
        (V4, 0, 24, 2),
        (V4, 0, 32, 2),
        (V4, 16, 32, 2),
        (V6, 3, 48, 3),
        (V6, 16, 48, 3),
        (V6, 32, 48, 2),
        (V6, 64, 128, 3),
    ] {
        let steps = check(dimension, &prefixes(dimension, 30_000, outer, length));
        assert!(steps <= most, "{steps} steps for /{length} in one /{outer}");
    }
    let mixed = [(3, 48), (16, 48), (32, 48), (64, 128), (3, 32), (16, 64)];
    let mixed = mixed
        .iter()
        .flat_map(|(outer, length)| prefixes(V6, 100_000, *outer, *length));
    let steps = check(V6, &mixed.collect());
    assert!(steps <= 5, "{steps} steps for the mixed set");
}

/// Worst cases for an index: sets around one address, with half of the remaining starts at each of
/// several depths.
#[test]
fn no_set_takes_more_than_the_bound() {
    for dimension in [V4, V6, PORT] {
        let address = random(7) & dimension.last();
        // Bits count from the lowest bit of the dimension.
        let value = |bit: u32| 1_u128 << (dimension.shift + bit);
        let nested = (0..dimension.bits)
            .flat_map(|bit| [address & !(value(bit) - 1), address | (value(bit) - 1)]);
        let one = value(0);
        let edges = nested.map(|edge| edge & !(one - 1) & dimension.last());
        check(dimension, &edges.collect());

        for each in [1, 5, 8, 11, 14] {
            for most in [8u64, 64, 1_000, 20_000] {
                let mut starts = BTreeSet::new();
                let (mut bits, mut left) = (dimension.bits, most);
                while bits > 0 && left > 0 {
                    let inside = value(bits - 1).wrapping_mul(2).wrapping_sub(1);
                    let near = (0..left.div_ceil(2)).map(|number| {
                        (address & !inside | random(number) & inside)
                            & !(one - 1)
                            & dimension.last()
                    });
                    starts.extend(near);
                    bits = bits.saturating_sub(each);
                    left /= 2;
                }
                check(dimension, &starts);
            }
        }
    }
}

/// Generates starts crowded at several depths around few addresses.
fn crowded(dimension: Dimension) -> impl Strategy<Value = BTreeSet<u128>> {
    let around = (any::<u128>(), 0..dimension.bits, 1usize..80).prop_flat_map(
        move |(centre, bits, count)| {
            let inside = (1u128 << bits << dimension.shift).wrapping_sub(1);
            let one = (1u128 << dimension.shift) - 1;
            let start = any::<u128>()
                .prop_map(move |bits| (centre & !inside | bits & inside) & !one & dimension.last());
            prop::collection::vec(start, count)
        },
    );
    prop::collection::vec(around, 1..12).prop_map(|crowds| crowds.into_iter().flatten().collect())
}

proptest! {
    #[test]
    fn finds_the_range_of_any_value(
        v4 in crowded(V4),
        v6 in crowded(V6),
        ports in crowded(PORT),
    ) {
        check(V4, &v4);
        check(V6, &v6);
        check(PORT, &ports);
    }
}

#[test]
fn finds_the_first_and_the_last_value() {
    for dimension in [V4, V6, PORT] {
        let one = 1 << dimension.shift;
        check(dimension, &[dimension.last()].into());
        check(dimension, &[one, dimension.last()].into());
        // Enough for a node, at either end.
        let first = (1..20).map(|number| number * one);
        check(dimension, &first.clone().collect());
        check(
            dimension,
            &first.map(|start| dimension.last() - start).collect(),
        );
    }
}
