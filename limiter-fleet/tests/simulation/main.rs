//! Leases in a simulated world: the store's own script, clocks that drift and are set, calls and replies that are lost
//! or late, nodes that crash, stall, are cut off or share a name, a store that restarts with all, with old or without
//! data; all from a seed.
//!
//! The invariant: one bucket with the whole budget would have admitted every token that the nodes admit. The world has
//! such a bucket, and takes each admitted token from it.

mod bucket;
mod faults;
mod host;
mod quiet;
mod store;
mod world;

use std::{env, panic};

use limiter_fleet::lease::ARBITER;

use self::{faults::Faults, world::World};

/// The number of worlds; `LIMITER_FLEET_SEEDS` overrides it.
const SEEDS: u64 = 100;

/// The first seed; `LIMITER_FLEET_SEED` overrides it.
const FIRST: u64 = 1;

fn number(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn no_fault_lets_more_pass_than_the_budget() {
    let first = number("LIMITER_FLEET_SEED", FIRST);
    let (mut grown, mut lowered, mut reported, mut refused) = (0, 0, 0, 0);
    for seed in first..first + number("LIMITER_FLEET_SEEDS", SEEDS) {
        let mut world = World::new(seed, Faults::EVERY, ARBITER);
        world.run_for(30_000);
        grown += world.sum(|host| host.grown);
        lowered += world.sum(|host| host.lowered);
        reported += world.sum(|host| host.reported);
        refused += world.sum(|host| host.refused);
    }
    println!("{grown} leases, {lowered} lowered, {reported} reports, {refused} refused");
    // Without leases, the run would prove nothing.
    assert!(grown > 1_000 && lowered > 300 && reported > 30 && refused > 10);
}

/// The check can fail: without any one rule of the script, some world exceeds the budget.
#[test]
fn each_rule_is_needed() {
    panic::set_hook(Box::new(|_| {}));
    let mut needless = Vec::new();
    for (rule, broken) in [
        // Leases are counted for longer than nodes use them.
        ("LEASE_MS = 4500", "LEASE_MS = 2500"),
        // The store's clock is not trusted.
        (", elapsed, STEP_MS)", ")"),
        // Another process of the server waits.
        ("state.run ~= run", "false"),
        ("opens = LEASE_MS", "opens = 0"),
        // Earlier leases of a node that starts again run out.
        (
            "    lives[session[4]] = true",
            "    lives[session[4]] = session[1] ~= ''",
        ),
        // No more than the rest is given,
        ("math.min(fair[at], keeps + free)", "fair[at]"),
        // or taken back before the node says so.
        (
            "record[at + 1], record[at + 2] = keeps, demand",
            "record[at + 1], record[at + 2] = demand, demand",
        ),
        // A late call changes nothing.
        ("number <= mine[3]", "false"),
        // Tokens are given once,
        (
            "math.floor(record[2] * (share - keeps) / free)",
            "share - keeps",
        ),
        // and come from nowhere else.
        (
            "known or { state.opens, 0, fill }",
            "known or { state.opens, POOL, fill }",
        ),
        ("math.min(returned, counted - keeps)", "counted - keeps"),
    ] {
        assert!(ARBITER.contains(rule), "{rule}");
        let script = ARBITER.replace(rule, broken);
        let is_found = (1..200).any(|seed| {
            let run = || World::new(seed, Faults::EVERY, &script).run_for(30_000);
            panic::catch_unwind(run).is_err()
        });
        needless.extend((!is_found).then_some(rule));
    }
    let _ = panic::take_hook();
    assert!(needless.is_empty(), "no world needs {needless:?}");
}
