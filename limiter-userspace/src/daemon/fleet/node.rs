//! The node: hears what other nodes say, and what is done here.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_common::name_hash::NameKeys;
use limiter_fleet::{
    Keys, Members, OpenError,
    bans::{BanId, BanNote, BanSeal, Beat, StreamPlace},
    pushes::PushSeal,
};
use limiter_policy::policy;
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::{
    complaints::Complaints,
    enforce::{self, Enforced},
    handle::Fleet,
    key_file::KeyFile,
    known::{Known, Taken},
    push::Pushes,
    words::{self, Now},
};
use crate::daemon::shared::Daemon;

/// The most bans of which the store may lack what is known, beside those that were not sent.
const MOST_DOUBTED: usize = 100_000;

/// How often the log says that notes are refused for one reason, at most.
const LOG_AGAIN: Duration = Duration::from_mins(1);

/// The node.
pub(super) struct Node {
    pub(super) daemon: Arc<Daemon>,
    pub(super) fleet: Arc<Fleet>,
    /// The runtime of the rest of the daemon, where the guard asks the kernel.
    pub(super) others: Handle,
    pub(super) known: Known,
    pub(super) seal: BanSeal,
    pub(super) push_seal: PushSeal,
    /// Its part in policies that are pushed.
    pub(super) pushes: Pushes,
    /// Whether all that the store had was read once.
    pub(super) has_read: bool,
    /// The last message of the stream that was read and put in force.
    pub(super) read: Option<StreamPlace>,
    /// Why there is no connection, as the log has said since there was one.
    pub(super) complaints: Complaints,
    key_file: KeyFile,
    /// The bans that hold elsewhere and are refused here.
    refused: HashMap<BanId, &'static str>,
    /// When the log last said why notes are refused.
    logged: HashMap<&'static str, Instant>,
    /// The digest of a policy, by its generation.
    policy: (u64, u64),
}

impl Node {
    pub(super) fn new(daemon: Arc<Daemon>, fleet: Arc<Fleet>, keys: &Keys, others: Handle) -> Self {
        let seal = BanSeal::new(&fleet.settings.name, keys);
        let key_file = KeyFile::new(&fleet.settings.key_file);
        let push_seal = PushSeal::new(&fleet.settings.name, keys);
        let pushes = Pushes::new(&daemon, &fleet);
        Self {
            known: Known::new(fleet.settings.node.clone()),
            daemon,
            fleet,
            others,
            seal,
            push_seal,
            pushes,
            has_read: false,
            read: None,
            complaints: Complaints::default(),
            key_file,
            refused: HashMap::new(),
            logged: HashMap::new(),
            policy: (0, 0),
        }
    }

    /// Notes the bans in force, of which the fleet may know.
    pub(super) fn begin(&mut self) {
        match enforce::seeds(&self.daemon) {
            Ok(seeds) => self.known.seeds = seeds.into_iter().collect(),
            Err(error) => warn!("the fleet does not hear of the bans in force: {error}"),
        }
    }

    /// Notes what was done here since the last time.
    pub(super) fn note_changes(&mut self) {
        let (changes, lost) = self.daemon.bans.store().take_changes();
        if lost > 0 {
            warn!(
                lost,
                "the fleet does not hear of some bans and liftings: there were too many at once \
                 (bans: {lost})"
            );
        }
        if changes.is_empty() {
            return;
        }
        let now = Now::new();
        let mut full = false;
        let daemon = Arc::clone(&self.daemon);
        let datapath = daemon.datapath();
        for changed in &changes {
            let (id, said, ends_ms) = words::said(changed, &datapath.manifest().names, now);
            self.refused.remove(&id);
            full |= !self.known.say(id, said, ends_ms, now.ms);
        }
        drop(datapath);
        if full {
            self.refuse("full", "there is no room for more of the fleet's bans");
        }
        self.tell();
    }

    /// Opens a letter; counts one that nobody of the fleet wrote.
    pub(super) fn open(&mut self, letter: &[u8]) -> Vec<BanNote> {
        match self.seal.open(letter) {
            Ok(notes) => notes,
            Err(error) => {
                self.refuse_letter(error);
                Vec::new()
            }
        }
    }

    /// Counts what nobody of the fleet wrote.
    pub(super) fn refuse_letter(&mut self, error: OpenError) {
        self.refuse(reason(error), &error.to_string());
    }

    /// Takes a note that was heard; returns what becomes of it.
    pub(super) fn take(&mut self, note: BanNote, now: Now) -> Taken {
        if let Err(wrong) = note.check(now.ms) {
            self.refuse(wrong.name(), &wrong.to_string());
            return Taken::Nothing;
        }
        let taken = self.known.take(note, now.ms);
        match taken {
            Taken::Due => self.fleet.told().heard += 1,
            Taken::Full => self.refuse("full", "there is no room for more of the fleet's bans"),
            Taken::InForce | Taken::Older | Taken::Nothing | Taken::Over => {}
        }
        taken
    }

    /// Takes what was just said, and puts in force what is new.
    pub(super) async fn hear(&mut self, notes: Vec<BanNote>) {
        let now = Now::new();
        let mut due = Vec::new();
        for note in notes {
            let id = note.id.clone();
            let delay_ms = now.ms.saturating_sub(note.stamp.ms);
            match self.take(note, now) {
                Taken::Due => {
                    self.fleet.told().delay_ns = Some(delay_ms.saturating_mul(1_000_000));
                    due.push(id);
                }
                Taken::Older => self.doubt(id),
                Taken::InForce | Taken::Nothing | Taken::Over | Taken::Full => {}
            }
        }
        self.enforce(due).await;
    }

    /// Has the store asked whether it has the last word about a ban.
    pub(super) fn doubt(&mut self, id: BanId) {
        if self.known.doubted.len() < MOST_DOUBTED {
            self.known.doubted.insert(id);
        }
    }

    /// Puts the last word about some bans in force.
    pub(super) async fn enforce(&mut self, ids: Vec<BanId>) {
        if ids.is_empty() {
            return;
        }
        let daemon = Arc::clone(&self.daemon);
        let asking = self
            .others
            .spawn(async move { daemon.guard.by_hand(None).await });
        // It ends with the daemon, and then nothing needs to be put in force.
        let Ok(protected) = asking.await else {
            return;
        };
        match enforce::enforce(&self.daemon, &self.known, &ids, &protected) {
            Ok(enforced) => self.enforced(enforced),
            Err(error) => {
                self.refuse("kernel", &error.to_string());
                self.refused
                    .extend(ids.into_iter().map(|id| (id, "kernel")));
            }
        }
        self.tell();
    }

    fn enforced(&mut self, enforced: Enforced) {
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
        enforce::log_refused(&self.known, &new);
    }

    /// Tries again what was refused here, as whom the guard protects may have changed, and forgets what
    /// is over. Returns what the store may forget, too.
    pub(super) async fn tidy(&mut self) -> Vec<BanId> {
        let now = Now::new();
        let over = self.known.map.forget(now.ms);
        let (map, refused) = (&self.known.map, &mut self.refused);
        refused.retain(|id, _| map.get(id).is_some_and(|entry| entry.holds(now.ms)));
        let again = refused.keys().cloned().collect();
        self.enforce(again).await;
        over
    }

    /// Returns this node's sign of life.
    pub(super) fn beat(&mut self, now: Now) -> Beat {
        let datapath = self.daemon.datapath();
        let manifest = datapath.manifest();
        if self.policy.0 != manifest.generation {
            let mut digest = policy::digest(&manifest.policy);
            // It decides otherwise where it numbers names otherwise.
            if manifest.policy.needs_names_alike() {
                digest ^= manifest.settings.name_keys().fingerprint();
            }
            self.policy = (manifest.generation, digest);
        }
        let version = env!("CARGO_PKG_VERSION");
        Beat::new(
            self.fleet.settings.node.clone(),
            version,
            self.policy.1,
            now.ms,
        )
        .with_read(self.read)
        .with_nodes(self.fleet.settings.members.as_ref().map(Members::digest))
    }

    /// Reads the keys again, if their file has changed; returns whether there are others now.
    pub(super) fn renew_keys(&mut self) -> bool {
        let Some(read) = self.key_file.renewed() else {
            return false;
        };
        let name = self.fleet.settings.key_file.display();
        match read {
            Ok(keys) => {
                self.seal = BanSeal::new(&self.fleet.settings.name, &keys);
                self.push_seal = PushSeal::new(&self.fleet.settings.name, &keys);
                info!("the fleet's keys are those in the file '{name}'");
                self.compare_names_key(&keys);
                true
            }
            Err(error) => {
                warn!("the fleet's keys stay as they were: the file '{name}' {error}");
                false
            }
        }
    }

    /// Logs that names have numbers by an earlier key, as a policy in force keeps them.
    fn compare_names_key(&self, keys: &Keys) {
        let datapath = self.daemon.datapath();
        let manifest = datapath.manifest();
        let by_keys = NameKeys::new(&self.fleet.settings.names_key(keys));
        if manifest.policy.needs_names_alike()
            && by_keys.fingerprint() != manifest.settings.name_keys().fingerprint()
        {
            warn!(
                "limits in common number names by the key of before: once all nodes seal with the new one, reload \
                 them all"
            );
        }
    }

    /// Counts a note that is refused, and logs why, now and then.
    pub(super) fn refuse(&mut self, reason: &'static str, why: &str) {
        self.fleet.refuse(reason);
        let now = Instant::now();
        let last = self.logged.get(reason);
        if last.is_none_or(|last| now > *last + LOG_AGAIN) {
            self.logged.insert(reason, now);
            warn!(
                reason,
                why, "what the fleet's store has is not believed: {why}"
            );
        }
    }

    /// Tells those who ask.
    pub(super) fn tell(&self) {
        let mut told = self.fleet.told();
        told.unsent = self.known.unsent.len();
        told.held = self.known.map.len();
        told.refused_here = self.refused.len();
    }

    /// Counts the bans of others.
    pub(super) fn count(&self) {
        let bans = self.known.map.of_others(Now::new().ms, self.refused.keys());
        self.fleet.told().bans = bans;
    }
}

/// Returns the name in metrics of why bytes are no letter.
const fn reason(error: OpenError) -> &'static str {
    match error {
        OpenError::TooLong => "too_long",
        OpenError::Version => "version",
        OpenError::Seal => "seal",
        OpenError::Notes => "unreadable",
    }
}
