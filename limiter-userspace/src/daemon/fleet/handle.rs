//! The state shared between the daemon and its fleet threads.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

use limiter_fleet::pushes::PushId;
use limiter_policy::fleet::Fleet as Settings;
use tokio::sync::Notify;

use super::push::{Lead, OtherPush};
use crate::protocol::{FleetBrief, FleetNode, FleetShare, FleetSources, FleetStatus};

/// The daemon does not belong to a fleet.
#[derive(Debug, thiserror::Error)]
#[error("the daemon belongs to no fleet: configure `fleet`, then start it again")]
pub(in crate::daemon) struct NoFleet;

/// A daemon's part in a fleet.
pub(in crate::daemon) struct Fleet {
    /// As configured when the daemon started.
    pub(in crate::daemon) settings: Settings,
    /// Notified when bans were made or lifted here.
    pub(super) changed: Arc<Notify>,
    /// Notified when the daemon ends.
    pub(super) ending: Notify,
    /// The same for the thread that shares budgets.
    pub(super) shares_ending: Notify,
    /// The same for the thread that shares known sources.
    pub(super) sources_ending: Notify,
    /// Whether an operator has trusted or untrusted sources since the last check.
    changed_known: AtomicBool,
    /// The last push that began here; `None`: none.
    pub(super) lead: Mutex<Option<Lead>>,
    told: Mutex<Told>,
}

/// The latest reports of the fleet threads.
pub(super) struct Told {
    pub(super) is_connected: bool,
    pub(super) error: Option<String>,
    pub(super) since: Instant,
    pub(super) unsent: usize,
    pub(super) held: usize,
    pub(super) bans: BTreeMap<String, u64>,
    pub(super) refused_here: usize,
    pub(super) delay_ns: Option<u64>,
    pub(super) sent: u64,
    pub(super) heard: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    pub(super) nodes: BTreeMap<String, Seen>,
    pub(super) shares: BTreeMap<String, FleetShare>,
    pub(super) letters_error: Option<String>,
    /// The servers that take letters, each with the reason why it loses some, if it does.
    pub(super) letter_servers: BTreeMap<String, Option<String>>,
    /// The state of sharing known sources; `None`: not shared.
    pub(super) sources: Option<FleetSources>,
    /// How many pushed policies were kept, refused and rolled back.
    pub(super) pushes: BTreeMap<&'static str, u64>,
    /// The newest push known to this node.
    pub(super) newest_push: Option<PushId>,
    /// The last known push of another node.
    pub(super) other_push: Option<OtherPush>,
}

/// A node's last heartbeat.
pub(super) struct Seen {
    pub(super) version: String,
    pub(super) policy: u64,
    /// A digest of the node's configured members.
    pub(super) nodes: Option<u64>,
    /// Its age when it was read, in nanoseconds.
    pub(super) age_ns: u64,
    /// How long the oldest message that the node has not read has been in the stream, in nanoseconds;
    /// `None`: the node does not report its position.
    pub(super) lag_ns: Option<u64>,
    pub(super) at: Instant,
}

impl Fleet {
    pub(in crate::daemon) fn new(settings: Settings) -> Self {
        Self {
            settings,
            changed: Arc::default(),
            ending: Notify::new(),
            shares_ending: Notify::new(),
            sources_ending: Notify::new(),
            changed_known: AtomicBool::new(false),
            lead: Mutex::default(),
            told: Mutex::new(Told {
                is_connected: false,
                error: None,
                since: Instant::now(),
                unsent: 0,
                held: 0,
                bans: BTreeMap::new(),
                refused_here: 0,
                delay_ns: None,
                sent: 0,
                heard: 0,
                refused: BTreeMap::new(),
                nodes: BTreeMap::new(),
                shares: BTreeMap::new(),
                letters_error: None,
                letter_servers: BTreeMap::new(),
                sources: None,
                pushes: BTreeMap::new(),
                newest_push: None,
                other_push: None,
            }),
        }
    }

    /// Returns the identity of the fleet and of this node.
    pub(in crate::daemon) fn brief(&self) -> FleetBrief {
        let [members, next_members] = self.settings.member_names();
        FleetBrief {
            name: self.settings.name.to_string(),
            node: self.settings.node.to_string(),
            store: self.settings.store.to_string(),
            members,
            next_members,
        }
    }

    /// Returns the state of the fleet, as this node knows it.
    pub(in crate::daemon) fn status(&self) -> FleetStatus {
        let told = self.told();
        let ns = |since: Instant| u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let nodes = told.nodes.iter().map(|(name, seen)| {
            let node = FleetNode {
                version: seen.version.clone(),
                policy: format!("{:016x}", seen.policy),
                ago_ns: seen.age_ns.saturating_add(ns(seen.at)),
                lag_ns: seen.lag_ns,
                nodes: seen.nodes.map(|nodes| format!("{nodes:016x}")),
            };
            (name.clone(), node)
        });
        let owned = |counts: &BTreeMap<&'static str, u64>| {
            let counts = counts.iter();
            let counts = counts.map(|(reason, count)| ((*reason).to_owned(), *count));
            counts.collect()
        };
        FleetStatus {
            fleet: self.brief(),
            connected: told.is_connected,
            error: told.error.clone(),
            since_ns: ns(told.since),
            unsent: told.unsent as u64,
            held: told.held as u64,
            bans: told.bans.clone(),
            refused_here: told.refused_here as u64,
            delay_ns: told.delay_ns,
            sent: told.sent,
            heard: told.heard,
            refused: owned(&told.refused),
            pushes: owned(&told.pushes),
            nodes: nodes.collect(),
            shares: told.shares.clone(),
            letters_error: told.letters_error.clone(),
            letter_servers: told.letter_servers.clone(),
            sources: told.sources.clone(),
        }
    }

    /// Returns the node with the newest push known to this node.
    pub(in crate::daemon) fn pusher(&self) -> Option<String> {
        let told = self.told();
        let newest = told.newest_push.as_ref();
        newest.map(|push| push.node.to_string())
    }

    /// Records that an operator has trusted or untrusted sources.
    pub(in crate::daemon) fn note_changed_known(&self) {
        self.changed_known.store(true, Relaxed);
    }

    /// Returns whether an operator has done so since the last call.
    pub(super) fn has_changed_known(&self) -> bool {
        self.changed_known.swap(false, Relaxed)
    }

    /// Counts a refused note.
    pub(super) fn refuse(&self, reason: &'static str) {
        *self.told().refused.entry(reason).or_default() += 1;
    }

    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        // A panic cannot leave the numbers inconsistent.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl Fleet {
    /// Returns a fleet without a store, of the node `a`.
    pub(super) fn without_store() -> Self {
        let name = |text: &str| text.try_into().expect("a name");
        Self::new(Settings {
            name: name("edge"),
            node: name("a"),
            members: None,
            store: limiter_policy::fleet::StoreAddress {
                tls: false,
                user: None,
                endpoints: Vec::new(),
                sentinel: None,
                database: 0,
            },
            password_file: None,
            key_file: "fleet.key".into(),
            ca_file: None,
            accept_policy: None,
            known_sources: true,
        })
    }
}
