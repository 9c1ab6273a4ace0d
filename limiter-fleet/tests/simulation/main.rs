//! The protocol in a simulated world: clocks that drift, messages that are lost, late, repeated, reordered
//! and withheld, nodes that crash, stall and restart, all from a seed.
//!
//! The invariant: one bucket with the whole budget would have admitted every token that the nodes admit.
//! The world has such a bucket, and takes each admitted token from it.

mod bucket;
mod faults;
mod host;
mod quiet;
mod scale;
mod world;

use std::env;

use limiter_fleet::Terms;

use self::{faults::Faults, world::World};

/// The number of worlds; `LIMITER_FLEET_SEEDS` overrides it.
const SEEDS: u64 = 50;

/// The first seed; `LIMITER_FLEET_SEED` overrides it.
const FIRST: u64 = 1;

fn number(variable: &str, otherwise: u64) -> u64 {
    env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn no_fault_lets_more_pass_than_the_budget() {
    let first = number("LIMITER_FLEET_SEED", FIRST);
    let (mut lent, mut renewed, mut forgotten) = (0, 0, 0);
    for seed in first..first + number("LIMITER_FLEET_SEEDS", SEEDS) {
        let mut world = World::new(seed, Faults::EVERY);
        world.run_for(30_000);
        lent += world.loans_taken();
        renewed += world.renewals();
        forgotten += world.forgotten();
    }
    // Without loans, the run would prove nothing.
    assert!(lent > 1_000, "{lent} loans");
    assert!(renewed > 1_000, "{renewed} renewals");
    assert!(forgotten > 150, "{forgotten} forgotten");
    println!("{lent} loans, {renewed} renewals, {forgotten} budgets forgotten");
}

/// The check can fail: a bank with shorter terms than the rest forgets its loans too early.
#[test]
#[should_panic(expected = "above the budget")]
fn a_bank_that_forgets_its_loans_too_early_is_found_out() {
    for seed in 1..100 {
        let mut world = World::new(seed, Faults::EVERY);
        world.differs(
            0,
            Terms {
                loan_ns: 100_000_000,
                ..Terms::DEFAULT
            },
        );
        world.run_for(30_000);
    }
}

/// The same for a node that starts without waiting: its home share may still be lent.
#[test]
#[should_panic(expected = "above the budget")]
fn a_node_that_begins_too_early_is_found_out() {
    for seed in 1..500 {
        let mut world = World::new(
            seed,
            Faults {
                crashed: 50,
                ..Faults::NONE
            },
        );
        world.begin_early();
        world.run_for(30_000);
    }
}
