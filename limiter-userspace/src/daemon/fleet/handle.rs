//! The daemon and the thread that is the fleet's node share this.

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

/// The daemon has no part in a fleet.
#[derive(Debug, thiserror::Error)]
#[error("the daemon belongs to no fleet: configure `fleet`, then start it again")]
pub(in crate::daemon) struct NoFleet;

/// A daemon's part in a fleet.
pub(in crate::daemon) struct Fleet {
    /// As it was configured when the daemon started.
    pub(in crate::daemon) settings: Settings,
    /// Notified when bans were made or lifted here.
    pub(super) changed: Arc<Notify>,
    /// Notified when the daemon ends.
    pub(super) ending: Notify,
    /// Notified for the thread that shares budgets when the daemon ends.
    pub(super) shares_ending: Notify,
    /// Notified for the thread that shares known sources when the daemon ends.
    pub(super) sources_ending: Notify,
    /// Whether an operator has vouched for sources, or had some forgotten, since it was asked last.
    changed_known: AtomicBool,
    /// The push that began here last; `None`: none did.
    pub(super) lead: Mutex<Option<Lead>>,
    told: Mutex<Told>,
}

/// The node's news.
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
    /// The servers that letters go to, each with why some are lost there.
    pub(super) letter_servers: BTreeMap<String, Option<String>>,
    /// Its part in sharing known sources; `None`: none.
    pub(super) sources: Option<FleetSources>,
    /// How many pushed policies were kept, refused and taken back.
    pub(super) pushes: BTreeMap<&'static str, u64>,
    /// The newest push that this node knows.
    pub(super) newest_push: Option<PushId>,
    /// The push of another node that was heard of last.
    pub(super) other_push: Option<OtherPush>,
}

/// A node's last sign of life.
pub(super) struct Seen {
    pub(super) version: String,
    pub(super) policy: u64,
    /// A digest of the nodes that it names.
    pub(super) nodes: Option<u64>,
    /// How old it was when it was read, in nanoseconds.
    pub(super) age_ns: u64,
    /// How long a message of the stream had been there that it had not read, in nanoseconds; `None`: it does not
    /// say what it has read.
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

    /// Returns which fleet it is.
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

    /// Returns what is known of it.
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

    /// Returns the node whose push is the newest that this node knows.
    pub(in crate::daemon) fn pusher(&self) -> Option<String> {
        let told = self.told();
        let newest = told.newest_push.as_ref();
        newest.map(|push| push.node.to_string())
    }

    /// Notes that an operator has vouched for sources, or had some forgotten.
    pub(in crate::daemon) fn note_changed_known(&self) {
        self.changed_known.store(true, Relaxed);
    }

    /// Returns whether an operator did so since it was asked last.
    pub(super) fn has_changed_known(&self) -> bool {
        self.changed_known.swap(false, Relaxed)
    }

    /// Counts notes that were refused.
    pub(super) fn refuse(&self, reason: &'static str) {
        *self.told().refused.entry(reason).or_default() += 1;
    }

    pub(super) fn told(&self) -> MutexGuard<'_, Told> {
        // A panic elsewhere spoils no number.
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
                places: Vec::new(),
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
