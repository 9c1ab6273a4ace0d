//! `limiter fleet status`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use anyhow::bail;
use clap::Args;

use crate::{
    cli::{
        args::{OutputArgs, ReadArgs},
        output::print_json,
        render::{ago, count, counted, duration, table},
    },
    protocol::{Answer, FleetStatus, Request},
};

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let Answer::Fleet(status) = args.read.ask_daemon(Request::Fleet)? else {
        bail!("the daemon gave an unexpected answer");
    };
    if args.output.json {
        return print_json(&status);
    }
    print(&mut io::stdout(), &status)
}

fn print(out: &mut impl Write, status: &FleetStatus) -> anyhow::Result<()> {
    let (fleet, since) = (&status.fleet, duration(status.since_ns));
    writeln!(out, "fleet {}, node {}", fleet.name, fleet.node)?;
    let state = match (&status.error, status.connected) {
        (_, true) => format!("connected for {since}"),
        (None, false) => format!("connecting for {since}"),
        (Some(error), false) => format!("not there for {since}: {error}"),
    };
    writeln!(out, "store {}: {state}", fleet.store)?;
    let bans = status.bans.iter();
    let bans: Vec<_> = bans
        .map(|(origin, number)| format!("{origin} {}", count(*number)))
        .collect();
    let bans = if bans.is_empty() {
        "none".to_owned()
    } else {
        bans.join(", ")
    };
    writeln!(out, "bans of other nodes: {bans}")?;
    writeln!(
        out,
        "known {}, unsent {}, refused here {}",
        count(status.held),
        count(status.unsent),
        count(status.refused_here)
    )?;
    if let Some(delay_ns) = status.delay_ns {
        writeln!(out, "last note under way for {}", duration(delay_ns))?;
    }
    print_shares(out, status)?;
    let refused = status.refused.iter();
    let refused: Vec<_> = refused
        .map(|(reason, number)| format!("{reason} {}", count(*number)))
        .collect();
    if !refused.is_empty() {
        writeln!(out, "notes refused: {}", refused.join(", "))?;
    }
    let pushes = status.pushes.iter();
    let pushes: Vec<_> = pushes
        .map(|(outcome, number)| format!("{} {}", outcome.replace('_', " "), count(*number)))
        .collect();
    if !pushes.is_empty() {
        writeln!(out, "pushed policies: {}", pushes.join(", "))?;
    }
    let policies = status.nodes.values().map(|node| &node.policy);
    let policies = policies.collect::<BTreeSet<_>>().len();
    let nodes = counted(status.nodes.len(), "node");
    let nodes = match policies {
        0 | 1 => nodes,
        policies => format!("{nodes}, which have {policies} different policies"),
    };
    writeln!(out, "{nodes}")?;
    if status.nodes.is_empty() {
        return Ok(());
    }
    let most = most_common(status);
    let header = ["node", "version", "policy", "sign of life", "differs"];
    let rows = status.nodes.iter().map(|(name, node)| {
        let differs = most.is_some_and(|most| node.policy != most);
        [
            name.clone(),
            node.version.clone(),
            node.policy.clone(),
            ago(node.ago_ns),
            if differs { "yes" } else { "" }.to_owned(),
        ]
    });
    writeln!(out, "{}", table(header, [], rows))?;
    Ok(())
}

/// Prints what this node has of budgets that the fleet has in common.
fn print_shares(out: &mut impl Write, status: &FleetStatus) -> anyhow::Result<()> {
    if status.shares.is_empty() {
        return Ok(());
    }
    if let Some(error) = &status.letters_error {
        writeln!(out, "budgets are not shared: {error}")?;
    }
    let header = ["budget", "share", "wanted", "rate", "burst", "problem"];
    let rows = status.shares.iter().map(|(name, share)| {
        [
            name.clone(),
            percent(share.share_billionths),
            percent(share.wanted_billionths),
            format!("{} a second", count(share.rate)),
            count(share.burst),
            share.error.clone().unwrap_or_else(|| "–".to_owned()),
        ]
    });
    writeln!(out, "{}", table(header, [1, 2, 3, 4], rows))?;
    Ok(())
}

/// Formats a share in billionths, rounded down.
fn percent(billionths: u64) -> String {
    let tenths = billionths / 1_000_000;
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns the policy that more nodes have than any other; `None`: no node differs, or two policies are as
/// common.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FleetBrief, FleetNode, FleetShare};

    fn shown(status: &FleetStatus) -> String {
        let mut out = Vec::new();
        print(&mut out, status).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_told() {
        let mut status = FleetStatus {
            fleet: FleetBrief {
                name: "edge".to_owned(),
                node: "a".to_owned(),
                store: "redis://store:6379/0".to_owned(),
                members: Vec::new(),
            },
            connected: false,
            error: None,
            since_ns: 2_000_000_000,
            unsent: 3,
            held: 1_234,
            bans: BTreeMap::new(),
            refused_here: 0,
            delay_ns: None,
            sent: 0,
            heard: 0,
            refused: BTreeMap::new(),
            pushes: BTreeMap::new(),
            nodes: BTreeMap::new(),
            shares: BTreeMap::new(),
            letters_error: None,
        };
        assert_eq!(
            shown(&status),
            "fleet edge, node a\n\
             store redis://store:6379/0: connecting for 2 s\n\
             bans of other nodes: none\n\
             known 1 234, unsent 3, refused here 0\n\
             0 nodes\n"
        );
        status.error = Some("Connection refused".to_owned());
        assert!(shown(&status).contains("not there for 2 s: Connection refused\n"));
        status.connected = true;
        status.delay_ns = Some(3_000_000);
        status.bans = BTreeMap::from([("automatic".to_owned(), 7), ("operator".to_owned(), 1)]);
        status.refused = BTreeMap::from([("seal".to_owned(), 2)]);
        let node = |policy: &str| FleetNode {
            version: "0.1.0".to_owned(),
            policy: policy.to_owned(),
            ago_ns: 1_000_000_000,
        };
        status.nodes = BTreeMap::from([
            ("a".to_owned(), node("00000000000000aa")),
            ("b".to_owned(), node("00000000000000bb")),
        ]);
        assert_eq!(
            shown(&status),
            "fleet edge, node a\n\
             store redis://store:6379/0: connected for 2 s\n\
             bans of other nodes: automatic 7, operator 1\n\
             known 1 234, unsent 3, refused here 0\n\
             last note under way for 3 ms\n\
             notes refused: seal 2\n\
             2 nodes, which have 2 different policies\n\
             node  version  policy            sign of life  differs\n\
             a     0.1.0    00000000000000aa  1 s ago\n\
             b     0.1.0    00000000000000bb  1 s ago\n"
        );
        let share = FleetShare {
            share_billionths: 974_999_999,
            wanted_billionths: 1_000_000_000,
            rate: 97_465,
            burst: 974,
            error: None,
        };
        status.shares = BTreeMap::from([("All".to_owned(), share)]);
        status.letters_error = Some("it does not answer".to_owned());
        let text = shown(&status);
        assert!(
            text.contains(
                "budgets are not shared: it does not answer\n\
                 budget   share   wanted             rate  burst  problem\n\
                 All     97.4 %  100.0 %  97 465 a second    974  –\n"
            ),
            "{text}"
        );
        status.pushes = BTreeMap::from([("kept".to_owned(), 1), ("taken_back".to_owned(), 2)]);
        status
            .nodes
            .insert("c".to_owned(), node("00000000000000aa"));
        let shown = shown(&status);
        assert!(shown.contains("pushed policies: kept 1, taken back 2\n"));
        assert!(
            shown.ends_with(
                "00000000000000bb  1 s ago       yes\nc     0.1.0    00000000000000aa  1 s ago\n"
            ),
            "{shown}"
        );
    }
}
