//! The nodes' heartbeats.

use std::{collections::BTreeMap, time::Instant};

use limiter_fleet::bans::Beat;
use limiter_fleet_store::Store;
use tracing::warn;

use super::{
    handle::Seen,
    lag::{self, Newest},
    node::Node,
    session::Over,
    words::Now,
};

/// The most nodes that are known at once.
const MOST: usize = 10_000;

/// How long a node without a heartbeat stays known, in milliseconds: a day.
const LONGEST_MS: u64 = 24 * 3_600_000;

/// The heartbeats over one connection.
#[derive(Default)]
pub(super) struct Beats {
    /// This node's last heartbeat; `None`: none yet.
    last: Option<Beat>,
    /// Whether another host has this node's name; the log has a warning about it.
    is_double: bool,
    /// The newest messages of the stream.
    newest: Newest,
}

impl Beats {
    /// Reads the heartbeats of all nodes, and sends this node's.
    pub(super) async fn exchange(
        &mut self,
        node: &mut Node,
        store: &mut Store,
    ) -> Result<(), Over> {
        // Read before the heartbeats, since nodes may read further in the meantime.
        let newest = node.meanwhile(store.newest()).await??;
        self.newest.note(lag::place(newest), Instant::now());
        let beats = node.meanwhile(store.beats(MOST)).await??;
        let now = Now::new();
        let mut seen = BTreeMap::<String, Beat>::new();
        for beat in beats.iter().take(MOST) {
            let Ok(beat) = node.seal.open_beat(beat) else {
                node.refuse("beat", "a sign of life is not sealed by the fleet's key");
                continue;
            };
            if now.ms.saturating_sub(beat.ms) > LONGEST_MS {
                node.meanwhile(store.forget_beat(beat.node.as_str()))
                    .await??;
                continue;
            }
            let name = beat.node.to_string();
            if seen.get(&name).is_none_or(|other| other.ms < beat.ms) {
                seen.insert(name, beat);
            }
        }
        let own = node.fleet.settings.node.to_string();
        self.look_for_double(seen.get(&own));
        let beat = node.beat(now);
        let written = node.seal.beat(&beat);
        let is_new = node.meanwhile(store.beat(&own, &written)).await??;
        let is_emptied = is_new && self.last.is_some();
        seen.insert(own, beat.clone());
        self.last = Some(beat);
        let at = Instant::now();
        node.fleet.told().nodes = seen
            .into_iter()
            .map(|(name, beat)| {
                let seen = Seen {
                    version: beat.version.into(),
                    policy: beat.policy,
                    nodes: beat.nodes,
                    age_ns: now.ms.saturating_sub(beat.ms).saturating_mul(1_000_000),
                    lag_ns: beat.read.map(|read| {
                        let lag = self.newest.lag(read, at);
                        u64::try_from(lag.as_nanos()).unwrap_or(u64::MAX)
                    }),
                    at,
                };
                (name, seen)
            })
            .collect();
        if is_emptied {
            Err(Over::Emptied)
        } else {
            Ok(())
        }
    }

    fn look_for_double(&mut self, found: Option<&Beat>) {
        let (Some(last), Some(found)) = (&self.last, found) else {
            return;
        };
        let is_double = last != found;
        if is_double && !self.is_double {
            let node = &found.node;
            warn!(
                node = node.as_str(),
                "another host says to be the fleet's node {node}, too: give each its own `fleet: \
                 {{node: …}}`"
            );
        }
        self.is_double = is_double;
    }
}
