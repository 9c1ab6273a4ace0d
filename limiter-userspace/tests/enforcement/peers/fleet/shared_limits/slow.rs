//! One server of a Cluster is slow: only nodes with messages on it suffer.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::{
    DRAINED, Flood, share,
    total::{ALL, LIMITS},
    wait_for_share,
    watch::Watch,
};
use crate::peers::fleet::{
    Fleet,
    cluster::{Delayed, ask},
    configuration_at,
    five::check_recovery,
    servers, start, status, wait_for, wait_until,
};

/// The nodes' names, each with the server of its messages. The first server has only the fleet's other keys.
const NODES: [(&str, usize); 4] = [("b", 1), ("a", 2), ("d", 3), ("h", 4)];

const SERVERS: usize = 5;

const PROMPT: Duration = Duration::ZERO;

/// Starts a Cluster of five servers, each behind a proxy, and four nodes, each with a different first
/// address.
fn begin() -> Result<(Delayed, Fleet)> {
    let store = servers::place(NODES.len())?;
    let cluster = Delayed::start(&store, SERVERS)?;
    let names = NODES.map(|(name, _)| name);
    let mut nodes = Vec::new();
    for (number, name) in names.into_iter().enumerate() {
        let places = [0, 1, 2, 3, 4].map(|other| Delayed::place((number + other) % SERVERS));
        let text = configuration_at(&store, &places.join(","), (name, &names), LIMITS, "");
        nodes.push(start(&store, number + 1, &text)?);
    }
    let fleet = Fleet { store, nodes };
    for node in &fleet.nodes {
        wait_until(node, |status| status["connected"] == true)?;
    }
    for (name, server) in NODES {
        crate::wait(|| {
            let keys = ask(&fleet.store, server, &["KEYS", "limiter:*"])?;
            Ok(keys.trim() == format!("limiter:letters:{{edge:{name}}}"))
        })?;
    }
    Ok((cluster, fleet))
}

/// Waits until both busy nodes have half of the shares that can be lent.
fn wait_for_halves(fleet: &Fleet) -> Result<()> {
    for node in &fleet.nodes[..2] {
        wait_for_share(node, |share| share > 440)?;
    }
    Ok(())
}

/// The first node's messages are on a server that gets slow, then slower. That node has its equal part, and
/// the others share the rest: no loan is wasted.
#[test]
fn a_slow_server_of_a_cluster_slows_only_nodes_with_messages_on_it() -> Result<()> {
    let (cluster, fleet) = begin()?;
    let [slow, second, ..] = &fleet.nodes[..] else {
        unreachable!("four nodes");
    };
    let mut watch = Watch::begin(&fleet, &[ALL])?;
    let floods = [Flood::of(&fleet, 1)?, Flood::of(&fleet, 2)?];
    watch.used_within(&fleet, DRAINED)?;
    watch.wait_for_use(&fleet, 95..=100)?;
    for answer in [300, 5_000].map(Duration::from_millis) {
        cluster.delay(1, answer);
        let begun = Instant::now();
        wait_for_share(second, |share| share > 700)?;
        wait_for_share(slow, |share| (240..=250).contains(&share))?;
        println!(
            "{answer:?}: each had what it can have after {:?}",
            begun.elapsed()
        );
        watch.wait_for_use(&fleet, 95..=100)?;
        ensure!(share(&status(second)?) > 700, "{:#}", status(second)?);
        let reported = wait_until(slow, |status| status["messages_error"].is_string())?;
        println!("{}", reported["messages_error"]);
        let place = Delayed::place(1);
        let reported = wait_until(second, |status| {
            status["message_servers"][&place].is_string()
        })?;
        println!("{}", reported["message_servers"]);
        cluster.delay(1, PROMPT);
        let begun = Instant::now();
        wait_for_halves(&fleet)?;
        check_recovery(&format!("after {answer:?}"), begun.elapsed())?;
        watch.wait_for_use(&fleet, 95..=100)?;
    }
    let log = slow.log()?;
    let lines = log.matches("budgets are not shared").count();
    ensure!((2..=5).contains(&lines), "{lines}\n{log}");

    // Pauses a server, first one with the messages of a busy node, then one with the messages of an idle
    // node.
    for server in [2, 3] {
        cluster.cluster.server(server)?.signal(Signal::SIGSTOP)?;
        watch.used_within(&fleet, Duration::from_secs(3))?;
        cluster.cluster.server(server)?.signal(Signal::SIGCONT)?;
        let begun = Instant::now();
        wait_for_halves(&fleet)?;
        check_recovery(&format!("server {server} went on"), begun.elapsed())?;
    }
    watch.wait_for_use(&fleet, 95..=100)?;
    for flood in floods {
        flood.stop()?;
    }
    fleet.stop()
}

/// The server with bans and heartbeats is slow: bans take longer, and budgets are shared as before.
#[test]
fn a_slow_server_with_bans_slows_no_budgets() -> Result<()> {
    let (cluster, fleet) = begin()?;
    let mut watch = Watch::begin(&fleet, &[ALL])?;
    let floods = [Flood::of(&fleet, 1)?, Flood::of(&fleet, 2)?];
    watch.used_within(&fleet, DRAINED)?;
    wait_for_halves(&fleet)?;
    cluster.delay(0, Duration::from_secs(1));
    fleet.nodes[3].show(&["ban", "192.0.2.1", "--for", "1h"])?;
    let begun = Instant::now();
    watch.used_within(&fleet, Duration::from_secs(4))?;
    watch.wait_for_use(&fleet, 95..=100)?;
    wait_for_halves(&fleet)?;
    wait_for(&fleet.nodes[0], "192.0.2.1", 1)?;
    println!("a ban was known after at most {:?}", begun.elapsed());
    for node in &fleet.nodes {
        wait_until(node, |status| status["messages_error"].is_null())?;
    }
    cluster.delay(0, PROMPT);
    fleet.nodes[3].show(&["ban", "198.51.100.1", "--for", "1h"])?;
    let begun = Instant::now();
    for node in &fleet.nodes[..3] {
        wait_for(node, "198.51.100.1", 1)?;
    }
    check_recovery("bans", begun.elapsed())?;
    for flood in floods {
        flood.stop()?;
    }
    fleet.stop()
}
