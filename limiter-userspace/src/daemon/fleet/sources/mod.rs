//! Known sources: a source proven by one node is trusted by all.
//!
//! The node scans the kernel's table for new proofs (`scan.rs`), if there may be any (`openings.rs`). Proofs of
//! other nodes go into the table, marked as not from this host (`enforce.rs`). The kernel ends each such
//! record together with its proof, even without a daemon.

mod convert;
mod enforce;
mod openings;
mod scan;

use std::{mem, sync::Arc};

use limiter_common::standing::Settings;
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{
    Kind, OpenError,
    replicated::{MergeOutcome, Replicated, UpdateRefusal},
    sources::{Proof, Source, SourceKey, SourceUpdate},
};
use limiter_fleet_store::{Map, Store};
use tracing::{info, warn};

use self::{openings::Openings, scan::Scanner};
use super::{
    handle::Fleet,
    replica::{Replica, Shared},
    session_end::SessionEnd,
    updates::Now,
    warnings::Warnings,
};
use crate::{
    daemon::{pace::cpu_time, shared::Daemon},
    protocol::FleetSources,
};

/// How many ticks of the session lie between two attempts to share known sources.
const RETRY_TICKS: u64 = 4;

pub(super) struct Sources {
    daemon: Arc<Daemon>,
    fleet: Arc<Fleet>,
    scanner: Scanner,
    openings: Openings,
    /// The settings of standing; `None`: the policy does not use it.
    settings: Option<Settings>,
    /// The reasons logged since known sources were last shared.
    warnings: Warnings,
}

impl Sources {
    pub(super) fn new(daemon: Arc<Daemon>, fleet: Arc<Fleet>) -> Self {
        Self {
            daemon,
            fleet,
            scanner: Scanner::new(),
            openings: Openings::default(),
            settings: None,
            warnings: Warnings::default(),
        }
    }

    fn ipv6_prefix(&self) -> u8 {
        self.settings.as_ref().map_or(64, convert::ipv6_prefix)
    }

    /// Scans for new proofs, if a scan is due and there may be any. If `all`, or if an operator has changed
    /// trust here, also finds ended proofs and lost records.
    fn scan(&mut self, map: &mut Replicated<Proof>, all: bool) {
        let is_due = self.scanner.are_due();
        let all = all || is_due && self.fleet.has_changed_known();
        let daemon = Arc::clone(&self.daemon);
        let may_find = all || is_due && self.openings.are_new(&daemon.datapath());
        if !may_find {
            return;
        }
        let begun = cpu_time();
        let scanned = {
            let datapath = daemon.datapath();
            let known = datapath.known_sources();
            known.and_then(|known| self.scanner.scan(&known, map, all))
        };
        match scanned {
            Ok(true) => {}
            Ok(false) => self.fleet.refuse("source_full"),
            Err(error) => self.failed(&error),
        }
        if all && let Err(error) = enforce::enforce_lost(&daemon, map) {
            self.failed(&error);
        }
        self.scanner.pause(begun);
    }

    /// Writes the winning proof of each of some sources to the table.
    fn enforce_sources(&self, map: &Replicated<Proof>, sources: &[Source]) {
        if let Err(error) = enforce::enforce(&self.daemon, map, sources) {
            self.failed(&error);
        }
    }

    /// Removes sources that no node proves.
    fn forget_unclaimed(&self, map: &Replicated<Proof>) {
        if let Err(error) = enforce::forget_unclaimed(&self.daemon, map) {
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

    const KIND: Kind = Kind::Sources;

    fn take(
        &mut self,
        map: &mut Replicated<Proof>,
        update: SourceUpdate,
        now: Now,
    ) -> Result<MergeOutcome, UpdateRefusal> {
        update.check(self.ipv6_prefix(), now.ms)?;
        let taken = map.take(update, now.ms);
        if taken == MergeOutcome::Full {
            self.fleet.refuse("source_full");
        }
        Ok(taken)
    }

    async fn enforce(&mut self, map: &Replicated<Proof>, keys: Vec<SourceKey>) {
        let sources: Vec<_> = keys.into_iter().map(|key| key.source).collect();
        self.enforce_sources(map, &sources);
    }

    fn unreadable(_: OpenError) -> &'static str {
        "source"
    }
}

impl Replica<Sources> {
    /// Follows the policy in force; returns whether it uses standing. If it identifies sources by another
    /// prefix length, everything starts again.
    pub(super) fn follow_policy(&mut self) -> bool {
        let settings = {
            let datapath = self.shared.daemon.datapath();
            let known = datapath.known_sources();
            known.ok().map(|known| *known.settings())
        };
        let before_prefix = self.shared.ipv6_prefix();
        let before = mem::replace(&mut self.shared.settings, settings);
        if settings.is_none() || self.shared.ipv6_prefix() != before_prefix {
            self.clear();
            self.shared.scanner = Scanner::new();
        } else if before != settings {
            let all: Vec<_> = self.map.sources().collect();
            self.shared.enforce_sources(&self.map, &all);
        }
        settings.is_some()
    }

    pub(super) async fn share(
        &mut self,
        store: &mut Store,
        tick: u64,
        is_tidy: bool,
    ) -> Result<(), SessionEnd> {
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
            if self.has_read {
                self.shared.scan(&mut self.map, true);
            }
            self.shared.warnings.clear();
        }
        if !self.has_read {
            return Ok(());
        }
        if is_tidy {
            let over = self.forget(store).await?;
            let soon = self.map.ending_soon(Now::new().ms);
            let changed: Vec<_> = over.into_iter().map(|key| key.source).chain(soon).collect();
            self.shared.enforce_sources(&self.map, &changed);
            self.shared.forget_unclaimed(&self.map);
        }
        self.read_again(store).await?;
        self.shared.scan(&mut self.map, is_tidy);
        self.publish(None);
        Ok(())
    }

    /// Reads the next page of the hash, if a reading is under way.
    pub(super) async fn read_sources(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        let is_first = !self.has_read;
        if self.read_page(store).await? && is_first {
            // An empty store may have lost its data: the nodes fill it again.
            if !self.map.is_empty() {
                self.shared.forget_unclaimed(&self.map);
            }
            if self.after.is_some() {
                self.shared.scan(&mut self.map, true);
            }
        }
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
