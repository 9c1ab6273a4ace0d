//! The lines about a fleet, for the terminal and the page.

use std::collections::{BTreeMap, BTreeSet};

use limiter_protocol::FleetStatus;

use crate::render::{ago, count, counted, duration};

/// Describes the connection to the store.
#[must_use]
pub fn store(status: &FleetStatus) -> String {
    let since = duration(status.since_ns);
    let state = match (&status.error, status.connected) {
        (_, true) => format!("connected for {since}"),
        (None, false) => format!("connecting for {since}"),
        (Some(error), false) => format!("not there for {since}: {error}"),
    };
    format!("store {}: {state}", status.fleet.store)
}

/// Counts the active bans of other nodes.
#[must_use]
pub fn bans(status: &FleetStatus) -> String {
    let bans = numbers(&status.bans);
    let bans = if bans.is_empty() { "none" } else { &bans };
    format!("bans of other nodes: {bans}")
}

/// Counts the known, unsent and locally refused bans.
pub fn ban_counts(status: &FleetStatus) -> String {
    let [held, unsent, refused] = [status.held, status.unsent, status.refused_here].map(count);
    format!("known {held}, unsent {unsent}, refused here {refused}")
}

/// Counts the nodes that share limits, or explains why this one does not.
#[must_use]
pub fn sharing(status: &FleetStatus) -> String {
    match (&status.leases_error, status.sharing_nodes) {
        (Some(error), _) => format!("limits are not shared: {error}"),
        (None, Some(nodes)) => format!("limits are shared by {}", counted_nodes(nodes)),
        (None, None) => "limits are not shared yet".to_owned(),
    }
}

fn counted_nodes(nodes: u64) -> String {
    counted(usize::try_from(nodes).unwrap_or(usize::MAX), "node")
}

/// Counts the shared known sources; `None`: none.
pub fn sources(status: &FleetStatus) -> Option<String> {
    let sources = status.sources.as_ref()?;
    let [proven, unsent, received] = [sources.proven, sources.unsent, sources.received].map(count);
    let problem = sources.error.as_ref();
    let problem = problem.map_or_else(String::new, |error| format!("; not shared now: {error}"));
    Some(format!(
        "known sources: {proven} proven here, {unsent} of them unsent, {received} entries of other nodes{problem}"
    ))
}

/// Counts refused messages by reason; `None`: none.
#[must_use]
pub fn refused(status: &FleetStatus) -> Option<String> {
    let refused = numbers(&status.refused);
    (!refused.is_empty()).then(|| format!("messages refused: {refused}"))
}

/// Counts the policies of rollouts by outcome; `None`: none.
#[must_use]
pub fn pushes(status: &FleetStatus) -> Option<String> {
    let pushes = numbers(&status.pushes).replace('_', " ");
    (!pushes.is_empty()).then(|| format!("pushed policies: {pushes}"))
}

/// Counts the nodes, and says whether their policies differ.
#[must_use]
pub fn nodes_in_all(status: &FleetStatus) -> String {
    let policies = status.nodes.values().map(|node| &node.policy);
    let nodes = counted(status.nodes.len(), "node");
    match policies.collect::<BTreeSet<_>>().len() {
        0 | 1 => nodes,
        policies => format!("{nodes}, which have {policies} different policies"),
    }
}

/// Heartbeats come every five seconds, so they cannot show a smaller lag.
const UNSEEN_NS: u64 = 10_000_000_000;

/// Returns a row for each node: its name, version and policy, the age of its heartbeat, its lag behind the
/// stream, and whether its policy differs from the most common one.
#[must_use]
pub fn nodes(status: &FleetStatus) -> Vec<[String; 6]> {
    let most = most_common(status);
    let rows = status.nodes.iter().map(|(name, node)| {
        let differs = most.is_some_and(|most| node.policy != most);
        [
            name.clone(),
            node.version.clone(),
            node.policy.clone(),
            ago(node.ago_ns),
            match node.lag_ns {
                None => "?".to_owned(),
                Some(..UNSEEN_NS) => "–".to_owned(),
                Some(lag_ns) => duration(lag_ns),
            },
            if differs { "yes" } else { "" }.to_owned(),
        ]
    });
    rows.collect()
}

/// Returns a row for each shared limit: its name, this node's share and demand, the number of active keys,
/// the rate and the burst of the share, and the reason why it is small.
#[must_use]
pub fn shares(status: &FleetStatus) -> Vec<[String; 7]> {
    let rows = status.shares.iter().map(|(name, share)| {
        [
            name.clone(),
            percent(share.share_billionths),
            (share.active).map_or_else(|| percent(share.wanted_billionths), |_| "–".to_owned()),
            share.active.map_or_else(|| "–".to_owned(), count),
            format!("{} a second", count(share.rate)),
            count(share.burst),
            share.error.clone().unwrap_or_else(|| "–".to_owned()),
        ]
    });
    rows.collect()
}

/// Formats named numbers.
fn numbers(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts.iter();
    let counts = counts.map(|(name, number)| format!("{name} {}", count(*number)));
    counts.collect::<Vec<_>>().join(", ")
}

/// Formats a share in billionths, rounded down.
fn percent(billionths: u64) -> String {
    let tenths = billionths / 1_000_000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns the most common policy; `None`: all nodes agree, or two policies tie.
fn most_common(status: &FleetStatus) -> Option<&str> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for node in status.nodes.values() {
        *counts.entry(&node.policy).or_default() += 1;
    }
    let most = *counts.values().max()?;
    let mut common = counts.into_iter().filter(|(_, count)| *count == most);
    let (policy, _) = common.next()?;
    common.next().is_none().then_some(policy)
}
