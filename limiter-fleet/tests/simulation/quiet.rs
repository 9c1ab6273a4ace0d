//! A fleet without faults: how much of the budget is used, and how soon.

use super::{bucket::Budget, world::World};

/// A thousand tokens a second, in thousandths.
const RATE: u64 = 1_000;
const BUDGET: Budget = Budget {
    burst: 200_000,
    rate: RATE * 1_000,
};

/// Long enough for a new store to give leases.
const START_MS: u64 = 5_000;

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
    for count in [1, 2, 5, 20] {
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
        world.run_for(2_000);
        let percent = used(&mut world, NODES, RATE, 1_000);
        assert!(percent >= 95, "after two seconds: {percent} %");
        all += used(&mut world, NODES, RATE, 7_000);
    }
    let percent = all / 6;
    assert!(percent >= 95, "{percent} %");
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
fn a_later_node_gets_its_part() {
    let mut world = World::quiet(5, 5, BUDGET);
    world.run_for(START_MS);
    world.demand(3, 5 * RATE);
    world.run_for(5_000);
    world.demand(4, 5 * RATE);
    world.run_for(2_000);
    for node in [3, 4] {
        world.admitted(node);
    }
    world.run_for(10_000);
    for node in [3, 4] {
        let admitted = world.admitted(node);
        // Half of 10 000, give or take the others' minimum shares and a tenth.
        assert!(
            (4_300..=5_300).contains(&admitted),
            "node {node}: {admitted}"
        );
    }
}

/// Small demands are met, and the rest goes to the large one.
#[test]
fn a_small_demand_is_met_beside_a_large_one() {
    let mut world = World::quiet(5, 5, BUDGET);
    world.run_for(START_MS);
    for (node, demand) in [(0, 10 * RATE), (1, 100), (2, 200)] {
        world.demand(node, demand);
    }
    world.run_for(3_000);
    for node in 0..3 {
        world.admitted(node);
    }
    world.run_for(10_000);
    let admitted = [0, 1, 2].map(|node| world.admitted(node));
    assert_eq!(admitted[1..], [1_000, 2_000]);
    assert!(admitted.iter().sum::<u64>() >= 9_300, "{admitted:?}");
}

/// Without the store, each node has its minimum share; with it again, all that it needs within seconds.
#[test]
fn nodes_that_are_cut_off_keep_the_minimum() {
    const NODES: usize = 4;
    let mut world = World::quiet(5, NODES, BUDGET);
    world.run_for(START_MS);
    world.demand(0, 5 * RATE);
    world.run_for(2_000);
    world.cut_all(20_000);
    // The leases end.
    world.run_for(5_000);
    let percent = used(&mut world, NODES, RATE, 10_000);
    assert_eq!(percent, 1);
    // To the end of the cut, plus seven seconds.
    world.run_for(5_000 + 7_000);
    let percent = used(&mut world, NODES, RATE, 10_000);
    assert!(percent >= 95, "{percent} %");
}

/// Another process of the server, with or without its data, ends no lease.
#[test]
fn leases_outlast_a_restart_of_the_store() {
    for with in ["all", "none"] {
        let mut world = World::quiet(5, 4, BUDGET);
        world.run_for(START_MS);
        world.demand(0, 5 * RATE);
        world.run_for(2_000);
        for _ in 0..3 {
            world.store.order("restart", with);
            let percent = used(&mut world, 4, RATE, 6_000);
            assert!(percent >= 95, "{with}: {percent} %");
        }
    }
}

/// Leases of a node that is gone are given to others when they are surely over.
#[test]
fn a_dead_node_is_replaced() {
    let mut world = World::quiet(5, 4, BUDGET);
    world.run_for(START_MS);
    world.demand(0, 5 * RATE);
    world.run_for(2_000);
    world.stop(0);
    world.demand(0, 0);
    world.demand(1, 5 * RATE);
    world.demand(2, 5 * RATE);
    world.run_for(6_000);
    let percent = used(&mut world, 4, RATE, 10_000);
    assert!(percent >= 95, "{percent} %");
    // The share of one that only left goes to another that has asked long ago.
    world.stop(1);
    world.demand(1, 0);
    world.run_for(6_000);
    let percent = used(&mut world, 4, RATE, 10_000);
    assert!(percent >= 95, "{percent} %");
}

/// The rest of a budget has filled while no node used it, so a lease comes with its tokens.
#[test]
fn a_lease_of_an_idle_budget_is_full() {
    let budget = Budget {
        burst: 1_000_000,
        // A token in ten seconds, in thousandths.
        rate: 100,
    };
    let mut world = World::quiet(5, 4, budget);
    world.run_for(budget.fill_ms() / 100);
    world.demand(2, 100);
    world.run_for(10_000);
    // A hundredth of the time fills a hundredth of the burst.
    let tokens = world.admitted(2);
    assert!((9..=25).contains(&tokens), "{tokens} of a new store");
}

#[test]
fn a_steady_fleet_calls_once_a_second_and_names_nothing() {
    const NODES: usize = 10;
    let mut world = World::quiet(9, NODES, BUDGET);
    for node in 0..NODES {
        world.demand(node, 30 + 100 * node as u64);
    }
    world.run_for(15_000);
    let (calls, entries) = (world.calls(), world.sum(|host| host.entries));
    world.run_for(20_000);
    assert!(world.calls() - calls <= 20 * NODES as u64);
    assert_eq!(world.sum(|host| host.entries) - entries, 0);
    // Without demand, the store forgets the key.
    for node in 0..NODES {
        world.demand(node, 0);
    }
    world.run_for(20_000);
    assert_eq!(world.store.size(), 1);
}
