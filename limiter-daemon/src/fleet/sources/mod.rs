//! Known sources: a source proven by one node is trusted by all.
//!
//! The node compares the kernel's table with the map (`sweep.rs`): in parts if there may be new proofs
//! (`openings.rs`), and completely now and then. Proofs of other nodes go into the table, marked as not from this
//! host. The kernel ends each such record together with its proof, even without a daemon.

mod convert;
mod openings;
mod sweep;

use std::{mem, sync::Arc};

use limiter_common::standing::Settings;
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{
    Refusal,
    replicated::Replicated,
    sources::{Proof, Source, SourceKey},
};
use limiter_fleet_store::{Map, Store};
use limiter_protocol::FleetSources;
use tracing::{info, warn};

use self::sweep::{Page, Sweeps};
use super::{
    handle::Fleet,
    replica::{Replica, Shared, TIDY_TICKS},
    session_end::SessionEnd,
    updates::Now,
    warnings::Warnings,
};
use crate::shared_datapath::SharedDatapath;

/// How many ticks of the session lie between two attempts to share known sources.
const RETRY_TICKS: u64 = 4;

pub(super) struct Sources {
    datapath: Arc<SharedDatapath>,
    fleet: Arc<Fleet>,
    sweeps: Sweeps,
    /// The settings of standing; `None`: the policy does not use it.
    settings: Option<Settings>,
    /// The reasons logged since known sources were last shared.
    warnings: Warnings,
}

impl Sources {
    pub(super) fn new(datapath: Arc<SharedDatapath>, fleet: Arc<Fleet>) -> Self {
        Self {
            datapath,
            fleet,
            sweeps: Sweeps::default(),
            settings: None,
            warnings: Warnings::default(),
        }
    }

    /// Compares the next page.
    fn sweep(&mut self, map: &mut Replicated<Proof>) {
        let page = {
            let datapath = self.datapath.read();
            let known = datapath.known_sources();
            known.and_then(|known| self.sweeps.compare(&known, map))
        };
        match page {
            Ok(Page { due, is_full }) => {
                if is_full {
                    self.refuse_full();
                }
                self.enforce_sources(map, &due);
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Writes the proofs of some sources by other nodes to the table.
    fn enforce_sources(&self, map: &Replicated<Proof>, sources: &[Source]) {
        if let Err(error) = sweep::enforce(&self.datapath, map, sources) {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &DatapathError) {
        if !matches!(error, DatapathError::NoStanding) {
            self.fleet.refuse("source_kernel");
            warn!("the fleet's known sources are not in force here: {error}");
        }
    }
}

impl Shared for Sources {
    type Value = Proof;

    const MAP: Map = Map::Sources;

    fn context(&self) -> u8 {
        self.settings.as_ref().map_or(64, convert::ipv6_prefix)
    }

    async fn enforce(&mut self, map: &Replicated<Proof>, keys: Vec<SourceKey>) {
        let sources: Vec<_> = keys.into_iter().map(|key| key.source).collect();
        self.enforce_sources(map, &sources);
    }

    fn unreadable(_: Refusal) -> &'static str {
        "source"
    }

    fn refuse_full(&self) {
        self.fleet.refuse("source_full");
    }
}

impl Replica<Sources> {
    /// Follows the policy in force; returns whether it uses standing. With other settings, everything starts again:
    /// they give records another meaning.
    pub(super) fn follow_policy(&mut self) -> bool {
        let settings = {
            let datapath = self.shared.datapath.read();
            let known = datapath.known_sources();
            known.ok().map(|known| *known.settings())
        };
        if mem::replace(&mut self.shared.settings, settings) != settings {
            self.clear();
            self.shared.sweeps = Sweeps::default();
        }
        settings.is_some()
    }

    /// Returns whether a sweep is under way.
    pub(super) const fn is_sweeping(&self) -> bool {
        self.after.is_some() && self.shared.sweeps.is_under_way()
    }

    /// Does the work of a turn of the session: in a `tick`, follows the policy and looks for new proofs; then sends,
    /// reads if it `may_read`, and compares a page.
    pub(super) async fn share(
        &mut self,
        store: &mut Store,
        tick: Option<u64>,
        may_read: bool,
    ) -> Result<(), SessionEnd> {
        if let Some(tick) = tick {
            if !self.follow_policy() {
                self.shared.fleet.report().sources = None;
                return Ok(());
            }
            self.tick(store, tick).await?;
        }
        if self.after.is_some() {
            self.send(store).await?;
        }
        if may_read {
            self.read_page(store).await?;
        }
        if self.is_sweeping() {
            self.shared.sweep(&mut self.map);
        }
        Ok(())
    }

    async fn tick(&mut self, store: &mut Store, tick: u64) -> Result<(), SessionEnd> {
        if self.after.is_none() {
            if !tick.is_multiple_of(RETRY_TICKS) && tick > 1 {
                return Ok(());
            }
            let usable = store.check_map(Map::Sources).await;
            if usable.is_ok() || !self.has_read && !self.is_reading() {
                self.begin_reading(store).await?;
            }
            if usable.is_err() {
                self.after = None;
            }
            usable?;
            self.shared.sweeps.all = true;
            self.shared.warnings.clear();
        }
        if !self.has_read {
            return Ok(());
        }
        if tick.is_multiple_of(TIDY_TICKS) {
            let over = self.forget(store).await?;
            self.shared.enforce(&self.map, over).await;
            self.shared.sweeps.all = true;
        }
        self.read_again(store).await?;
        // An operator's change of trust may have ended proofs, and lost records.
        self.shared.sweeps.all |= self.shared.fleet.has_changed_known();
        (self.shared.sweeps).begin(&self.map, &self.shared.datapath);
        self.publish(None);
        Ok(())
    }

    fn publish(&mut self, error: Option<String>) {
        let fleet = &self.shared.fleet;
        let unsent = self.map.unsent() as u64;
        let mut active = self.map.active(Now::new().ms, []);
        let proven = active.remove(fleet.settings.node.as_str()).unwrap_or(0);
        let is_shared = error.is_none();
        let report = FleetSources {
            proven,
            unsent,
            received: active.into_values().sum(),
            error,
        };
        let before = fleet.report().sources.replace(report);
        if is_shared && before.is_none_or(|before| before.error.is_some()) {
            let store = &fleet.settings.store;
            info!("known sources are shared over the fleet's store {store}");
        }
    }

    /// Stops sharing known sources, and reports why.
    pub(super) fn stop(&mut self, why: &str) {
        self.after = None;
        let store = &self.shared.fleet.settings.store;
        if self.shared.warnings.is_new(why) {
            warn!(
                why,
                "known sources are not shared over the fleet's store {store}: {why}; what is known stays so"
            );
        }
        self.publish(Some(why.to_owned()));
    }
}
