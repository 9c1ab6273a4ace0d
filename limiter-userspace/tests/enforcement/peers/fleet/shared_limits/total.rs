//! `id: total`: all sources share one budget.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use testbed::Limiter;

use super::{share, wait_for_parts, watch::Budget};
use crate::peers::fleet::{Fleet, configuration, status};

pub(super) const LIMITS: &str = "limits:
  Passing: {id: total, cost: packets, burst: 1000000, count: 1000000, period: 1s}
  All: {id: total, cost: packets, match: {protocol: udp, destination-port: 9}, scope: fleet, burst: 5000,
        count: 1000, period: 1s}";

pub(super) const ALL: Budget = Budget {
    limit: "All",
    passed: "passed_packets",
    rate: 1_000,
};

/// Returns the rate of a node's share, in tokens a second.
fn rate(node: &Limiter) -> Result<u64> {
    let rate = status(node)?["shares"]["All"]["rate"].as_u64();
    rate.context("no share")
}

/// A limit with a new rate has a new budget: each node begins at its minimum share, and then gets its part.
#[test]
fn a_limit_that_changes_begins_at_its_minimum_share() -> Result<()> {
    let all = ["a", "b"];
    let fleet = Fleet::with(&all, LIMITS)?;
    wait_for_parts(&fleet, "All")?;
    let changed = LIMITS.replace("count: 1000", "count: 2000");
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
        ensure!(rate <= 1_000, "{rate}");
    }
    // Half of the new rate: the time at the minimum share may be over by now.
    for node in &fleet.nodes {
        crate::wait(|| Ok((990..=1_000).contains(&rate(node)?)))?;
        ensure!(share(&status(node)?) >= 499);
    }
    println!("each had its half {:?} after the change", begun.elapsed());
    fleet.stop()
}
