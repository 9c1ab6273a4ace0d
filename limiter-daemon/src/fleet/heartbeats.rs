//! The nodes' heartbeats.

use std::{collections::BTreeMap, time::Instant};

use limiter_fleet::{Heartbeat, Kind};
use limiter_fleet_store::{Map, Store};
use limiter_protocol::FleetNode;
use tracing::warn;

use super::{lag::Newest, node::Node, session_end::SessionEnd, updates::Now};

/// The most nodes that are known at once.
const MOST: usize = 10_000;

/// How long a node without a heartbeat stays known, in milliseconds: a day.
const LONGEST_MS: u64 = 24 * 3_600_000;

/// The heartbeats over one connection.
#[derive(Default)]
pub(super) struct Heartbeats {
    /// This node's last heartbeat; `None`: none yet.
    last: Option<Heartbeat>,
    /// Whether another host has this node's name; the log has a warning about it.
    is_double: bool,
    /// The newest messages of the stream.
    newest: Newest,
}

impl Heartbeats {
    /// Reads the heartbeats of all nodes, and sends this node's.
    pub(super) async fn exchange(
        &mut self,
        node: &mut Node,
        store: &mut Store,
    ) -> Result<(), SessionEnd> {
        // Read before the heartbeats, since nodes may read further in the meantime.
        let newest = store.newest(Map::Bans).await?;
        self.newest.record(newest, Instant::now());
        node.bans.check_end(newest);
        let most_bytes = Kind::Heartbeats.most_bytes();
        let heartbeats = store.all_values(Store::NODES, MOST, most_bytes).await?;
        let now = Now::new();
        let mut seen = BTreeMap::<String, Heartbeat>::new();
        let envelope = node.fleet.envelope(Kind::Heartbeats);
        for heartbeat in heartbeats.iter().take(MOST) {
            let heartbeat = envelope.read::<Heartbeat>(heartbeat);
            let Some(heartbeat) = heartbeat.ok().filter(Heartbeat::is_right) else {
                let why = "a heartbeat is not authenticated by the fleet's key";
                node.fleet.refuse_message("heartbeat", why);
                continue;
            };
            if now.ms.saturating_sub(heartbeat.ms) > LONGEST_MS {
                store
                    .delete(Store::NODES, &[heartbeat.node.as_str()])
                    .await?;
                continue;
            }
            let name = heartbeat.node.to_string();
            if seen.get(&name).is_none_or(|other| other.ms < heartbeat.ms) {
                seen.insert(name, heartbeat);
            }
        }
        let own = node.fleet.settings.node.to_string();
        self.check_duplicate(seen.get(&own));
        let heartbeat = node.heartbeat(now);
        let written = envelope.write(&heartbeat);
        let field = own.as_str().into();
        let new_fields = store.write(Store::NODES, &[(field, written)]).await?;
        let is_emptied = new_fields > 0 && self.last.is_some();
        seen.insert(own, heartbeat.clone());
        self.last = Some(heartbeat);
        let at = Instant::now();
        let seen = seen.into_iter().map(|(name, heartbeat)| {
            let age_ms = now.ms.saturating_sub(heartbeat.ms);
            let seen = FleetNode {
                version: heartbeat.version.into(),
                policy: format!("{:016x}", heartbeat.policy),
                ago_ns: age_ms.saturating_mul(1_000_000),
                lag_ns: heartbeat.read.map(|read| {
                    let lag = self.newest.lag(read, at);
                    u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX)
                }),
            };
            (name, seen)
        });
        let nodes = seen.collect();
        let mut report = node.fleet.report();
        (report.nodes, report.heartbeats_at) = (nodes, at);
        if is_emptied {
            Err(SessionEnd::Emptied)
        } else {
            Ok(())
        }
    }

    fn check_duplicate(&mut self, found: Option<&Heartbeat>) {
        let (Some(last), Some(found)) = (&self.last, found) else {
            return;
        };
        let is_double = last != found;
        if is_double && !self.is_double {
            let node = &found.node;
            warn!(
                node = node.as_str(),
                "another host sends heartbeats as the fleet's node {node}, too: give each its own `fleet: \
                 {{node: …}}`"
            );
        }
        self.is_double = is_double;
    }
}
