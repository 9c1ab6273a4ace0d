//! `limiter fleet status`.

use std::io::Write;

use limiter_protocol::{FleetQuery, FleetStatus};
use limiter_report::{
    fleet,
    render::{duration, table},
};

use crate::cli::{
    args::{OutputArgs, ReadArgs},
    output::{print_json, stdout},
};

pub(super) fn status(read: &ReadArgs, output: &OutputArgs) -> anyhow::Result<()> {
    let status = read.query_daemon(FleetQuery)?;
    if output.json {
        return print_json(&status);
    }
    print(&mut stdout(), &status)
}

fn print(out: &mut impl Write, status: &FleetStatus) -> anyhow::Result<()> {
    let fleet = &status.fleet;
    writeln!(out, "fleet {}, node {}", fleet.name, fleet.node)?;
    writeln!(out, "{}", fleet::store(status))?;
    writeln!(out, "{}", fleet::bans(status))?;
    writeln!(out, "{}", fleet::ban_counts(status))?;
    if let Some(delay_ns) = status.delay_ns {
        writeln!(out, "last update under way for {}", duration(delay_ns))?;
    }
    if !status.shares.is_empty() {
        writeln!(out, "{}", fleet::sharing(status))?;
        let header = [
            "limit", "share", "wanted", "active", "rate", "burst", "problem",
        ];
        let rows = fleet::shares(status).into_iter();
        writeln!(out, "{}", table(header, [1, 2, 3, 4, 5], rows))?;
    }
    for line in [
        fleet::sources(status),
        fleet::refused(status),
        fleet::pushes(status),
    ]
    .iter()
    .flatten()
    {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "{}", fleet::nodes_in_all(status))?;
    if status.nodes.is_empty() {
        return Ok(());
    }
    let header = ["node", "version", "policy", "heartbeat", "lag", "differs"];
    let rows = fleet::nodes(status).into_iter();
    writeln!(out, "{}", table(header, [], rows))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use limiter_protocol::{FleetBrief, FleetNode, FleetShare, FleetSources};

    fn shown(status: &FleetStatus) -> String {
        let mut out = Vec::new();
        print(&mut out, status).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Returns the status of a node without a connection.
    fn connecting() -> FleetStatus {
        FleetStatus {
            fleet: FleetBrief {
                name: "edge".to_owned(),
                node: "a".to_owned(),
                store: "redis://store:6379/0".to_owned(),
                accept_policy: None,
                settings: BTreeMap::new(),
            },
            since_ns: 2_000_000_000,
            unsent: 3,
            held: 1_234,
            ..FleetStatus::default()
        }
    }

    #[test]
    fn what_is_told() {
        let mut status = connecting();
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
        status.refused = BTreeMap::from([("mac".to_owned(), 2)]);
        let node = |policy: &str| FleetNode {
            version: "0.1.0".to_owned(),
            policy: policy.to_owned(),
            ago_ns: 1_000_000_000,
            lag_ns: Some(6_000_000_000),
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
             last update under way for 3 ms\n\
             messages refused: mac 2\n\
             2 nodes, which have 2 different policies\n\
             node  version  policy            heartbeat  lag  differs\n\
             a     0.1.0    00000000000000aa  1 s ago    –\n\
             b     0.1.0    00000000000000bb  1 s ago    –\n"
        );
        status.pushes = BTreeMap::from([("kept".to_owned(), 1), ("taken_back".to_owned(), 2)]);
        status
            .nodes
            .insert("c".to_owned(), node("00000000000000aa"));
        let lags = [None, Some(42_000_000_000)];
        for (node, lag_ns) in status.nodes.values_mut().skip(1).zip(lags) {
            node.lag_ns = lag_ns;
        }
        assert_eq!((status.silent(), status.policies()), (0, 2));
        assert_eq!(status.lag_ns(), Some(6_000_000_000));
        let shown = shown(&status);
        assert!(shown.contains("pushed policies: kept 1, taken back 2\n"));
        assert!(
            shown.ends_with(
                "00000000000000bb  1 s ago    ?     yes\n\
                 c     0.1.0    00000000000000aa  1 s ago    42 s\n"
            ),
            "{shown}"
        );
    }

    #[test]
    fn known_sources() {
        let mut status = connecting();
        let mut sources = FleetSources {
            proven: 12_345,
            unsent: 6,
            received: 7_890,
            error: None,
        };
        status.sources = Some(sources.clone());
        let line =
            "known sources: 12 345 proven here, 6 of them unsent, 7 890 entries of other nodes";
        assert!(shown(&status).contains(&format!("\n{line}\n")));
        sources.error = Some("it does not answer".to_owned());
        status.sources = Some(sources);
        let line = format!("\n{line}; not shared now: it does not answer\n");
        assert!(shown(&status).contains(&line));
    }

    #[test]
    fn shared_limits() {
        let mut status = connecting();
        let share = FleetShare {
            share_billionths: 974_999_999,
            wanted_billionths: 1_000_000_000,
            active: None,
            rate: 97_465,
            burst: 974,
            error: None,
        };
        let of_many = FleetShare {
            share_billionths: 500_000_000,
            wanted_billionths: 0,
            active: Some(1_234),
            rate: 50_000,
            burst: 500,
            error: None,
        };
        status.shares = BTreeMap::from([("All".to_owned(), share), ("Each".to_owned(), of_many)]);
        status.leases_error = Some("it does not answer".to_owned());
        let text = shown(&status);
        assert!(
            text.contains(
                "limits are not shared: it does not answer\n\
                 limit   share   wanted  active             rate  burst  problem\n\
                 All    97.4 %  100.0 %       –  97 465 a second    974  –\n\
                 Each   50.0 %        –   1 234  50 000 a second    500  –\n"
            ),
            "{text}"
        );
    }
}
