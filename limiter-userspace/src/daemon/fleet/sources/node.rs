//! This node: sends its own entries about sources, and takes the ones of other nodes.

use std::{pin::pin, sync::Arc, time::Duration};

use limiter_common::standing::Settings;
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{
    Keys,
    sources::{OwnEntries, Source, SourceAuthenticator, SourceMap},
};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{
    super::{
        handle::Fleet, jitter::jittered, key_file::KeyFile, session::Over, updates::Now,
        warnings::Warnings,
    },
    enforce,
    openings::Openings,
    scan::{Scanner, Seen},
};
use crate::{
    daemon::{pace::cpu_time, shared::Daemon},
    protocol::FleetSources,
};

/// The longest pause before reconnecting.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest interval between two reports to the thread's watchdog.
const ALIVE: Duration = Duration::from_millis(500);

pub(super) struct SourceNode {
    pub(super) daemon: Arc<Daemon>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) authenticator: SourceAuthenticator,
    pub(super) own_entries: OwnEntries,
    pub(super) map: SourceMap,
    /// Whether the node has read the whole store once.
    pub(super) has_read: bool,
    scanner: Scanner,
    openings: Openings,
    /// The settings of standing; `None`: the policy does not use it.
    settings: Option<Settings>,
    key_file: KeyFile,
    /// The reasons logged since there was a connection.
    warnings: Warnings,
}

impl SourceNode {
    pub(super) fn new(daemon: Arc<Daemon>, fleet: Arc<Fleet>, keys: &Keys) -> Self {
        let node = &fleet.settings.node;
        Self {
            authenticator: SourceAuthenticator::new(&fleet.settings.name, keys),
            own_entries: OwnEntries::new(node.clone(), 0),
            map: SourceMap::new(node.clone(), 0),
            has_read: false,
            scanner: Scanner::new(),
            openings: Openings::default(),
            settings: None,
            key_file: KeyFile::new(&fleet.settings.key_file),
            warnings: Warnings::default(),
            daemon,
            fleet,
        }
    }

    pub(super) async fn live(&mut self) {
        loop {
            let error = match self.session().await {
                Ok(()) => continue,
                Err(Over::Ending) => return,
                Err(error) => error,
            };
            self.record_loss(&error);
            if self.meanwhile(sleep(jittered(PAUSE))).await.is_err() {
                return;
            }
        }
    }

    /// Waits for the store, and keeps the watchdog fed.
    pub(super) async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> Result<T, Over> {
        let mut work = pin!(work);
        loop {
            self.daemon.watchdog.sources.check_in();
            tokio::select! {
                done = &mut work => return Ok(done),
                () = self.fleet.sources_ending.notified() => return Err(Over::Ending),
                () = sleep(ALIVE) => {}
            }
        }
    }

    pub(super) async fn wait_for_standing(&mut self) -> Result<(), Over> {
        loop {
            let settings = {
                let datapath = self.daemon.datapath();
                let known = datapath.known_sources();
                known.ok().map(|known| *known.settings())
            };
            if let Some(settings) = settings {
                self.follow(settings);
                return Ok(());
            }
            self.meanwhile(sleep(PAUSE)).await?;
        }
    }

    /// Scans for new entries, if a scan is due and there may be any. If `all`, or if an operator has changed
    /// trust here, also finds ended entries and lost records.
    pub(super) fn scan(&mut self, all: bool) -> Result<(), Over> {
        let is_due = self.scanner.are_due();
        let all = all || is_due && self.fleet.has_changed_known();
        let may_see = all || is_due && self.openings.are_new(&self.daemon.datapath());
        if !may_see {
            return Ok(());
        }
        let begun = cpu_time();
        let scanned = self.scan_now(all);
        if all && let Err(error) = enforce::enforce_lost(&self.daemon, &self.map) {
            self.failed(&error);
        }
        self.scanner.pause(begun);
        scanned
    }

    fn scan_now(&mut self, all: bool) -> Result<(), Over> {
        let seen = match self.scanner.scan(&self.daemon, &mut self.own_entries, all) {
            Ok(seen) => seen,
            Err(error) => {
                self.failed(&error);
                return Ok(());
            }
        };
        let Some(Seen { settings, is_full }) = seen else {
            self.settings = None;
            self.fleet.report().sources = None;
            return Err(Over::NoStanding);
        };
        if is_full {
            self.fleet.refuse("source_full");
        }
        if self.follow(settings) {
            return Err(Over::OtherSources);
        }
        Ok(())
    }

    /// Follows the settings in force; returns whether they identify sources by another prefix length, so
    /// that everything starts again.
    fn follow(&mut self, settings: Settings) -> bool {
        let before = self.settings.replace(settings);
        let ipv6_prefix = u8::try_from(settings.ipv6_prefix).unwrap_or(64);
        if ipv6_prefix != self.map.ipv6_prefix() {
            let node = &self.fleet.settings.node;
            self.own_entries = OwnEntries::new(node.clone(), ipv6_prefix);
            self.map = SourceMap::new(node.clone(), ipv6_prefix);
            self.scanner = Scanner::new();
            self.has_read = false;
            return true;
        }
        if before != Some(settings) {
            let all: Vec<_> = self.map.sources().collect();
            self.enforce(&all);
        }
        false
    }

    /// Writes the winning entry about each of some sources to the table.
    pub(super) fn enforce(&self, sources: &[Source]) {
        if let Err(error) = enforce::enforce(&self.daemon, &self.map, sources) {
            self.failed(&error);
        }
    }

    /// Removes sources that no node has an entry about.
    pub(super) fn forget_unclaimed(&self) {
        if let Err(error) = enforce::forget_unclaimed(&self.daemon, &self.map) {
            self.failed(&error);
        }
    }

    fn failed(&self, error: &DatapathError) {
        self.fleet.refuse("source_kernel");
        warn!("the fleet's known sources are not in force here: {error}");
    }

    /// Forgets ended entries.
    pub(super) fn tidy(&mut self) {
        let ended = self.map.forget(Now::new().ms);
        self.enforce(&ended);
    }

    pub(super) fn renew_keys(&mut self) {
        // The thread that shares bans reports errors of the file.
        if let Some(Ok(keys)) = self.key_file.renewed() {
            self.authenticator = SourceAuthenticator::new(&self.fleet.settings.name, &keys);
            self.own_entries.write_all_again(Now::new().ms);
        }
    }

    /// Publishes the state for status queries, while the store works.
    pub(super) fn publish(&mut self) {
        self.warnings.clear();
        let report = FleetSources {
            proven: self.own_entries.len() as u64,
            unsent: self.own_entries.unsent() as u64,
            received: self.map.len() as u64,
            error: None,
        };
        let store = &self.fleet.settings.store;
        let before = self.fleet.report().sources.replace(report);
        if before.is_none_or(|before| before.error.is_some()) {
            info!("known sources are shared over the fleet's store {store}");
        }
    }

    /// Reports why the store is not available.
    fn record_loss(&mut self, error: &Over) {
        if matches!(error, Over::OtherSources | Over::NoStanding) {
            return;
        }
        let (why, store) = (error.to_string(), &self.fleet.settings.store);
        let mut report = self.fleet.report();
        let sources = report.sources.get_or_insert_default();
        if self.warnings.is_new(&why) {
            warn!(
                why,
                "known sources are not shared over the fleet's store {store}: {why}; what is known stays so"
            );
        }
        sources.error = Some(why);
    }
}
