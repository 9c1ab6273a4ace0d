//! `id: total`: all sources share one budget.

use anyhow::{Result, ensure};

use super::{DRAINED, Flood, share, wait_for_leases, wait_for_share, watch::Budget};
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

/// While nodes are reloaded one after another, each uses its share by its own rate.
#[test]
fn a_limit_that_changes_keeps_its_leases() -> Result<()> {
    let all = ["a", "b"];
    let fleet = Fleet::with(&all, LIMITS)?;
    wait_for_leases(&fleet)?;
    let flood = Flood::of(&fleet, 1)?;
    wait_for_share(&fleet.nodes[0], |share| share > 950)?;
    let changed = LIMITS.replace("count: 1000", "count: 2000");
    for (number, (node, name)) in (1..).zip(fleet.nodes.iter().zip(all)) {
        node.configure(&configuration(
            &fleet.store,
            number,
            (name, &all),
            &changed,
            "",
        ))?;
        node.show(&["reload"])?;
        let status = status(&fleet.nodes[0])?;
        ensure!(share(&status) > 950, "{status:#}");
    }
    std::thread::sleep(DRAINED);
    let status = status(&fleet.nodes[0])?;
    ensure!(
        status["shares"]["All"]["rate"].as_u64() > Some(1_900),
        "{status:#}"
    );
    flood.stop()?;
    fleet.stop()
}
