//! The fleet's bans on this host.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use limiter_fleet::{
    Refusal,
    bans::{BanId, BanState},
    replicated::Replicated,
};
use limiter_fleet_store::Map;
use tokio::runtime::Handle;
use tracing::warn;

use super::{
    enforce::{self, RefusedBan},
    handle::Fleet,
    replica::{Replica, Shared},
    updates::{self, Now},
};
use crate::{bans::SharedBans, guard::Guard};

pub(super) struct Bans {
    table: Arc<SharedBans>,
    guard: Arc<Guard>,
    fleet: Arc<Fleet>,
    /// The runtime of the rest of the daemon, where the guard queries the kernel.
    others: Handle,
    /// The active bans of other nodes that are refused here, each with the reason.
    refused: HashMap<BanId, &'static str>,
}

impl Bans {
    pub(super) fn new(
        table: Arc<SharedBans>,
        guard: Arc<Guard>,
        fleet: Arc<Fleet>,
        others: Handle,
    ) -> Self {
        Self {
            table,
            guard,
            fleet,
            others,
            refused: HashMap::new(),
        }
    }

    /// Records the changes made here since the last call.
    pub(super) fn record_changes(&mut self, map: &mut Replicated<BanState>) {
        let (changes, lost) = self.table.index().take_changes();
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
            let datapath = self.table.datapath.read();
            let names = &datapath.manifest().names;
            for changed in &changes {
                let (id, state, ends_ms) = updates::state_of(changed, names, now);
                self.refused.remove(&id);
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

    /// Remembers which of some bans are refused here.
    fn enforced(&mut self, map: &Replicated<BanState>, ids: &[BanId], refused: Vec<RefusedBan>) {
        let mut before: HashMap<_, _> =
            (ids.iter().filter_map(|id| self.refused.remove_entry(id))).collect();
        let mut new = Vec::new();
        for refused in refused {
            self.refused.insert(refused.id.clone(), refused.reason);
            if before.remove(&refused.id) != Some(refused.reason) {
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

    fn context(&self) {}

    async fn enforce(&mut self, map: &Replicated<BanState>, ids: Vec<BanId>) {
        if ids.is_empty() {
            return;
        }
        let guard = Arc::clone(&self.guard);
        let asking = self.others.spawn(async move { guard.by_hand(None).await });
        // Fails only when the daemon ends: then there is nothing to enforce.
        let Ok(protected) = asking.await else {
            return;
        };
        match enforce::enforce(&self.table, map, &ids, &protected) {
            Ok(refused) => self.enforced(map, &ids, refused),
            Err(error) => {
                self.fleet.refuse_message("kernel", &error.to_string());
                let refused = ids.into_iter().map(|id| (id, "kernel"));
                self.refused.extend(refused);
            }
        }
    }

    fn unreadable(refusal: Refusal) -> &'static str {
        refusal.name()
    }

    fn refuse_full(&self) {
        let why = "there is no room for more of the fleet's bans";
        self.fleet.refuse_message("full", why);
    }
}

impl Replica<Bans> {
    /// Remembers the active bans, which the fleet may know already.
    pub(super) fn begin(&mut self) {
        if let Err(error) = enforce::seed(&self.shared.table.datapath, &mut self.map) {
            warn!("the fleet does not receive the bans in force: {error}");
        }
    }
}
