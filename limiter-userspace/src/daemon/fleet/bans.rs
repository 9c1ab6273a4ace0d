//! The fleet's bans on this host.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
};

use limiter_fleet::{
    Kind, OpenError,
    bans::{BanId, BanState, BanUpdate},
    replicated::{MergeOutcome, Replicated, UpdateRefusal, Value as _},
};
use limiter_fleet_store::Map;
use tokio::runtime::Handle;
use tracing::warn;

use super::{
    enforce::{self, Enforcement},
    handle::Fleet,
    replica::Shared,
    updates::{self, Now},
};
use crate::daemon::shared::Daemon;

/// How far the end of one ban may differ between nodes, in milliseconds.
const SAME_END_MS: u64 = 2_000;

/// A ban that was active here before the node read the store.
#[derive(Clone, Debug)]
pub(super) struct Seed {
    /// When it was made, in milliseconds since 1970.
    pub(super) since_ms: u64,
    /// The state to send about it.
    pub(super) state: BanState,
}

/// The active bans of this host that no update has confirmed yet.
#[derive(Default)]
pub(super) struct Seeds(HashMap<BanId, Seed>);

pub(super) struct Bans {
    daemon: Arc<Daemon>,
    fleet: Arc<Fleet>,
    /// The runtime of the rest of the daemon, where the guard queries the kernel.
    others: Handle,
    seeds: Seeds,
    /// The active bans of other nodes that are refused here, each with the reason.
    refused: HashMap<BanId, &'static str>,
}

impl Seeds {
    /// Takes a checked update, at a time in milliseconds since 1970. [`MergeOutcome::New`]: it must be enforced.
    fn take(
        &mut self,
        map: &mut Replicated<BanState>,
        update: BanUpdate,
        now_ms: u64,
    ) -> MergeOutcome {
        let (id, ms, ends_ms) = (update.key.clone(), update.stamp.ms, update.value.ends_ms());
        let merged = map.take(update, now_ms);
        if merged == MergeOutcome::New
            && let Some(seed) = self.0.remove(&id)
        {
            if ends_ms.abs_diff(seed.state.ends_ms()) <= SAME_END_MS {
                return MergeOutcome::Known;
            }
            if ms < seed.since_ms {
                record_seed(map, id, seed);
                return MergeOutcome::Known;
            }
        }
        merged
    }

    /// Claims all remaining seeds as bans of this node: the store has no update about them.
    fn record(&mut self, map: &mut Replicated<BanState>) {
        for (id, seed) in mem::take(&mut self.0) {
            record_seed(map, id, seed);
        }
    }
}

fn record_seed(map: &mut Replicated<BanState>, id: BanId, seed: Seed) {
    let ends_ms = seed.state.ends_ms();
    map.record_at(seed.since_ms, id, seed.state, ends_ms);
}

impl Bans {
    pub(super) fn new(daemon: Arc<Daemon>, fleet: Arc<Fleet>, others: Handle) -> Self {
        Self {
            daemon,
            fleet,
            others,
            seeds: Seeds::default(),
            refused: HashMap::new(),
        }
    }

    /// Remembers the active bans, which the fleet may know already.
    pub(super) fn begin(&mut self) {
        match enforce::seeds(&self.daemon) {
            Ok(seeds) => self.seeds = Seeds(seeds.into_iter().collect()),
            Err(error) => warn!("the fleet does not receive the bans in force: {error}"),
        }
    }

    /// Claims the bans that were active before the node read the whole store.
    pub(super) fn record_seeds(&mut self, map: &mut Replicated<BanState>) {
        self.seeds.record(map);
    }

    /// Records the changes made here since the last call.
    pub(super) fn record_changes(&mut self, map: &mut Replicated<BanState>) {
        let (changes, lost) = self.daemon.bans.ban_index().take_changes();
        if lost > 0 {
            warn!(
                lost,
                "the fleet does not receive some bans and liftings: there were too many at once \
                 (bans: {lost})"
            );
        }
        if changes.is_empty() {
            return;
        }
        let now = Now::new();
        let mut is_full = false;
        {
            let datapath = self.daemon.datapath();
            let names = &datapath.manifest().names;
            for changed in &changes {
                let (id, state, ends_ms) = updates::state_of(changed, names, now);
                self.refused.remove(&id);
                self.seeds.0.remove(&id);
                is_full |= !map.record(id, state, ends_ms, now.ms);
            }
        }
        if is_full {
            self.refuse_full();
        }
    }

    /// Retries bans refused here, since the guard's protected addresses may have changed.
    pub(super) async fn retry(&mut self, map: &Replicated<BanState>) {
        let now_ms = Now::new().ms;
        self.refused
            .retain(|id, _| map.get(id).is_some_and(|entry| entry.holds(now_ms)));
        let again = self.refused.keys().cloned().collect();
        self.enforce(map, again).await;
    }

    /// The number of active bans of other nodes that are refused here.
    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }

    /// Counts the active bans of other nodes by origin.
    pub(super) fn count(&self, map: &mut Replicated<BanState>) -> BTreeMap<String, u64> {
        map.active(Now::new().ms, self.refused.keys())
    }

    fn refuse_full(&self) {
        let why = "there is no room for more of the fleet's bans";
        self.fleet.refuse_message("full", why);
    }

    fn enforced(&mut self, map: &Replicated<BanState>, enforced: Enforcement) {
        for id in enforced.allowed {
            self.refused.remove(&id);
        }
        let mut new = Vec::new();
        for refused in enforced.refused {
            if self.refused.insert(refused.id.clone(), refused.reason) != Some(refused.reason) {
                self.fleet.refuse(refused.reason);
                new.push(refused);
            }
        }
        enforce::log_refused(map, &new);
    }
}

impl Shared for Bans {
    type Value = BanState;

    const MAP: Map = Map::Bans;

    const KIND: Kind = Kind::Bans;

    fn take(
        &mut self,
        map: &mut Replicated<BanState>,
        update: BanUpdate,
        now: Now,
    ) -> Result<MergeOutcome, UpdateRefusal> {
        update.check(now.ms)?;
        let taken = self.seeds.take(map, update, now.ms);
        match taken {
            MergeOutcome::New => self.fleet.report().received += 1,
            MergeOutcome::Full => self.refuse_full(),
            MergeOutcome::Known | MergeOutcome::Older | MergeOutcome::Over => {}
        }
        Ok(taken)
    }

    async fn enforce(&mut self, map: &Replicated<BanState>, ids: Vec<BanId>) {
        if ids.is_empty() {
            return;
        }
        let daemon = Arc::clone(&self.daemon);
        let asking = self
            .others
            .spawn(async move { daemon.guard.by_hand(None).await });
        // Fails only when the daemon ends: then there is nothing to enforce.
        let Ok(protected) = asking.await else {
            return;
        };
        match enforce::enforce(&self.daemon, map, &ids, &protected) {
            Ok(enforced) => self.enforced(map, enforced),
            Err(error) => {
                self.fleet.refuse_message("kernel", &error.to_string());
                let refused = ids.into_iter().map(|id| (id, "kernel"));
                self.refused.extend(refused);
            }
        }
    }

    fn unreadable(error: OpenError) -> &'static str {
        error.name()
    }
}

#[cfg(test)]
mod tests {
    use limiter_fleet::replicated::Stamp;

    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn id() -> BanId {
        BanId {
            prefix: "192.0.2.1/32".parse().unwrap(),
            origin: "operator".into(),
        }
    }

    fn state(until_ms: u64) -> BanState {
        BanState::Banned {
            until_ms: Some(until_ms),
            reason: "".into(),
            limit: None,
        }
    }

    /// Returns the outcome of an update about a ban that is active here since NOW, and whether there is
    /// something to send.
    fn after(ms: u64, value: BanState) -> (MergeOutcome, bool) {
        let mut map = Replicated::new("a".try_into().unwrap());
        let seed = Seed {
            since_ms: NOW,
            state: state(NOW + 9_000),
        };
        let mut seeds = Seeds([(id(), seed)].into());
        let update = BanUpdate {
            key: id(),
            stamp: Stamp {
                ms,
                node: "b".try_into().unwrap(),
            },
            ends_ms: value.ends_ms().max(NOW + 9_000),
            value,
        };
        let taken = seeds.take(&mut map, update, NOW);
        seeds.record(&mut map);
        (taken, map.unsent() > 0)
    }

    #[test]
    fn bans_from_before_the_fleet_was_read() {
        // The update is about the same ban.
        let same = after(NOW - 5, state(NOW + 8_000));
        assert_eq!(same, (MergeOutcome::Known, false));
        // The update has another end or lifts the ban, and is later or earlier.
        let other = after(NOW + 5, state(NOW + 1_000));
        assert_eq!(other, (MergeOutcome::New, false));
        assert_eq!(after(NOW + 5, BanState::Lifted), (MergeOutcome::New, false));
        assert_eq!(
            after(NOW - 5, BanState::Lifted),
            (MergeOutcome::Known, true)
        );
    }
}
