//! The protocol in a world of its own: clocks that drift, messages that are lost, late, repeated, out of
//! order and kept back, nodes that crash, stall and start again, all from a seed.
//!
//! Whatever happens, one bucket with the whole budget would have admitted all that the nodes have: the
//! world has such a bucket, and each token that a node admits is taken from it.

mod bucket;
mod faults;
mod host;
mod quiet;
mod scale;
mod world;

use std::env;

use limiter_fleet::Terms;

use self::{faults::Faults, world::World};

/// How many worlds, unless `LIMITER_FLEET_SEEDS` says another number.
const SEEDS: u64 = 50;

/// The first of them; `LIMITER_FLEET_SEED` names another.
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
    // What nobody borrows proves nothing.
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

/// And a node that begins at once after a start: it has at home what may still be lent.
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
