//! `id: total`: all sources share one budget.

use std::{thread, time::Instant};

use anyhow::{Context as _, Result, ensure};
use testbed::Limiter;

use super::{
    DRAINED, Flood, IN_THE_END, share, wait_for_parts, wait_for_share,
    watch::{Budget, Watch},
};
use crate::peers::fleet::{Fleet, PACE, configuration, status};

pub(super) const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  All: {id: total, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 20000,
        count: 4000, period: 1s}";

pub(super) const ALL: Budget = Budget {
    limit: "All",
    passed: "passed_packets",
    rate: 4_000,
};

/// Returns the rate of a node's share, in tokens a second.
fn rate(node: &Limiter) -> Result<u64> {
    let rate = status(node)?["shares"]["All"]["rate"].as_u64();
    rate.context("no share")
}

/// One node's packets get nearly all, then another's; without a store each has its own half, and later they share
/// again. Never is more admitted than the limit says.
#[test]
fn a_budget_in_common_is_never_exceeded() -> Result<()> {
    let mut fleet = Fleet::with(&["a", "b"], LIMITS)?;
    let mut watch = Watch::begin(&fleet, &[ALL])?;

    let flood = Flood::of(&fleet, 1)?;
    let taken = wait_for_share(&fleet.nodes[0], |share| share > 950)?;
    println!("the first node had nearly all after {taken:?}");
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 93..=100)?;
    let other = Flood::of(&fleet, 2)?;
    watch.wait_for_use(&fleet, 93..=100)?;
    flood.stop()?;
    let taken = wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    println!("the other node had nearly all after {taken:?}");
    watch.wait_for_use(&fleet, 93..=100)?;

    fleet.store.kill()?;
    let ended = wait_for_share(&fleet.nodes[1], |share| share <= 500)?;
    println!("what was lent ended {ended:?} after the store");
    watch.wait_for_use(&fleet, 45..=51)?;
    fleet.store.run()?;
    let back = wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    println!("{back:?} after the store was back, it had nearly all");
    watch.wait_for_use(&fleet, 93..=100)?;

    // A node that starts anew waits until all loans are over.
    fleet.nodes[1].kill()?;
    fleet.nodes[1].restart()?;
    let back = wait_for_share(&fleet.nodes[1], |share| share > 950)?;
    println!("{back:?} after a killed daemon was back, it had nearly all");
    other.stop()?;
    fleet.stop()
}

/// A limit whose rate changes is another budget: each node begins at its floor, and then has its part.
#[test]
fn a_limit_that_changes_begins_at_its_floor() -> Result<()> {
    let all = ["a", "b"];
    let fleet = Fleet::with(&all, LIMITS)?;
    wait_for_parts(&fleet, "All")?;
    let changed = LIMITS.replace("count: 4000", "count: 8000");
    let begun = Instant::now();
    for (number, (node, name)) in (1..).zip(fleet.nodes.iter().zip(all)) {
        node.configure(&configuration(
            &fleet.store,
            number,
            (name, &all),
            &changed,
            "",
        ))?;
        node.show(&["reload"])?;
        let rate = rate(node)?;
        println!("just after the reload of {name}, its rate was {rate}");
        ensure!(rate <= 4_000, "{rate}");
    }
    // Half of the new rate: the floor before may be over by now.
    for node in &fleet.nodes {
        let begun = Instant::now();
        while !(3_990..=4_000).contains(&rate(node)?) {
            ensure!(begun.elapsed() < IN_THE_END, "{:#}", status(node)?);
            thread::sleep(PACE);
        }
        ensure!(share(&status(node)?) >= 499);
    }
    println!("each had its half {:?} after the change", begun.elapsed());
    fleet.stop()
}
