//! A fleet without faults: how much of the budget is used, and how soon.

use limiter_fleet::Terms;

use super::{
    bucket::Budget,
    world::{MS, World},
};

/// A thousand tokens a second, in thousandths.
const RATE: u64 = 1_000;
const BUDGET: Budget = Budget {
    burst: 200_000,
    rate: RATE * 1_000,
};

/// Long enough for all loans of an earlier start to end.
const START_MS: u64 = 3_000;

/// Returns the admitted percentage of the rate, over so many milliseconds.
fn used(world: &mut World, nodes: usize, rate: u64, ms: u64) -> u64 {
    for node in 0..nodes {
        world.admitted(node);
    }
    world.run_for(ms);
    let admitted: u64 = (0..nodes).map(|node| world.admitted(node)).sum();
    admitted * 100 * 1_000 / (rate * ms)
}

#[test]
fn one_node_that_has_all_the_demand_gets_the_budget_within_a_second() {
    for count in [1, 2, 5, 20, 100] {
        let mut world = World::quiet(count as u64, count, BUDGET);
        world.run_for(START_MS);
        world.demand(count / 2, 5 * RATE);
        world.run_for(1_000);
        let percent = used(&mut world, count, RATE, 10_000);
        assert!((95..=100).contains(&percent), "{count} nodes: {percent} %");
    }
}

#[test]
fn demand_that_moves_is_followed() {
    const NODES: usize = 20;
    let mut world = World::quiet(7, NODES, BUDGET);
    world.run_for(START_MS);
    let mut all = 0;
    for turn in 0..6 {
        for node in 0..NODES {
            world.demand(node, if node == turn * 3 { 5 * RATE } else { 0 });
        }
        all += used(&mut world, NODES, RATE, 10_000);
    }
    let percent = all / 6;
    assert!(percent >= 90, "{percent} %");
}

#[test]
fn equal_demands_get_equal_parts() {
    const NODES: usize = 10;
    let mut world = World::quiet(3, NODES, BUDGET);
    for node in 0..NODES {
        world.demand(node, RATE);
    }
    world.run_for(10_000);
    for node in 0..NODES {
        world.admitted(node);
    }
    world.run_for(10_000);
    for node in 0..NODES {
        let admitted = world.admitted(node);
        // A tenth of 10 000, give or take a tenth of that.
        assert!((900..=1_100).contains(&admitted), "node {node}: {admitted}");
    }
}

/// A node with nearly the whole budget gives up half when another node needs it too.
#[test]
fn who_comes_later_gets_its_part() {
    let mut world = World::quiet(5, 5, BUDGET);
    world.run_for(START_MS);
    world.demand(3, 5 * RATE);
    world.run_for(5_000);
    world.demand(4, 5 * RATE);
    world.run_for(1_000);
    for node in [3, 4] {
        world.admitted(node);
    }
    world.run_for(10_000);
    for node in [3, 4] {
        let admitted = world.admitted(node);
        // Half of 10 000, give or take the others' floors and a tenth.
        assert!(
            (4_300..=5_300).contains(&admitted),
            "node {node}: {admitted}"
        );
    }
}

/// Without messages, each node has its home share; with them again, all that it needs within seconds.
#[test]
fn nodes_that_are_cut_off_keep_what_is_theirs() {
    const NODES: usize = 4;
    let mut world = World::quiet(5, NODES, BUDGET);
    world.run_for(START_MS);
    world.demand(0, 5 * RATE);
    world.run_for(2_000);
    world.cut_all(20_000);
    // The loans end.
    world.run_for(5_000);
    let percent = used(&mut world, NODES, RATE, 10_000);
    assert!((24..=26).contains(&percent), "{percent} %");
    // To the end of the cut, plus five seconds.
    world.run_for(5_000 + 5_000);
    let percent = used(&mut world, NODES, RATE, 10_000);
    assert!(percent >= 95, "{percent} %");
}

#[test]
fn nothing_is_sent_while_no_node_needs_more_than_it_has() {
    const NODES: usize = 10;
    let mut world = World::quiet(9, NODES, BUDGET);
    for node in 0..NODES {
        // Less than the floor.
        world.demand(node, 3);
    }
    world.run_for(20_000);
    assert_eq!(world.messages(), 0);
}

/// Ten thousand nodes, a hundred of them with ten times the budget as demand.
#[test]
fn a_large_fleet_shares_as_a_small_one_does() {
    const NODES: usize = 10_000;
    const BUSY: usize = 100;
    const LARGE: u64 = 50 * RATE;
    let budget = Budget {
        burst: LARGE * 1_000,
        rate: LARGE * 1_000,
    };
    let mut world = World::quiet(11, NODES, budget);
    world.run_for(Terms::among(10_000).silent_ns() / MS + 100);
    for node in 0..BUSY {
        world.demand(node * 97, LARGE / 10);
    }
    world.run_for(4_000);
    let before = world.messages();
    let percent = used(&mut world, NODES, LARGE, 2_000);
    let messages = (world.messages() - before) / 2 / BUSY;
    assert!((90..=100).contains(&percent), "{percent} %");
    // A busy node sends requests to its eight banks while their replies change, and they reply.
    println!("{messages} messages a second of a busy node, {percent} % used");
    assert!(messages <= 40, "{messages} messages a second");
}
