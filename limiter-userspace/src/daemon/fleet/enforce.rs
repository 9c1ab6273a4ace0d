//! Enforces bans of other nodes, unless this node's guard or policy forbids them.

use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{
    bans::{BanId, BanState},
    replicated::{Entry, Replicated},
};
use limiter_policy::{
    policy::bans::{Origin, prefix_of},
    text::short,
};
use tracing::{debug, warn};

use super::{
    bans::Seed,
    updates::{self, Now},
};
use crate::{
    daemon::{bans::BanError, guard::GuardError, shared::Daemon},
    guard::ProtectedAddresses,
};

/// How many refused bans to name in one log message.
const NAMED: usize = 5;

/// A ban that is active on other nodes but refused here.
pub(super) struct RefusedBan {
    pub(super) id: BanId,
    /// Its name in metrics.
    pub(super) reason: &'static str,
    why: String,
}

/// The outcome of enforcing bans of other nodes.
#[derive(Default)]
pub(super) struct Enforcement {
    /// The bans that are refused here.
    pub(super) refused: Vec<RefusedBan>,
    /// The bans that nothing forbids.
    pub(super) allowed: Vec<BanId>,
}

/// Enforces the last update about some bans.
pub(super) fn enforce(
    daemon: &Daemon,
    map: &Replicated<BanState>,
    ids: &[BanId],
    protected: &Result<ProtectedAddresses, GuardError>,
) -> Result<Enforcement, DatapathError> {
    let now = Now::new();
    daemon.with_bans(|datapath, bans| {
        bans.skip_journal();
        let manifest = datapath.manifest();
        let mut enforced = Enforcement::default();
        for id in ids {
            let Some(entry) = map.get(id) else {
                continue;
            };
            let new = updates::new_ban(id, &entry.value, &manifest.names, now);
            let Some(new) = new.filter(|_| entry.holds(now.ms)) else {
                if let Ok(origin) = id.origin.parse::<Origin>() {
                    bans.unban(id.prefix, Some(&origin))?;
                }
                enforced.allowed.push(id.clone());
                continue;
            };
            let refuse = |reason, why| RefusedBan {
                id: id.clone(),
                reason,
                why,
            };
            let refusal = match protected {
                Err(unavailable) => Some(refuse("guard_blind", unavailable.to_string())),
                Ok(protected) => (protected.refusal(id.prefix))
                    .map(|refusal| refuse("protected", refusal.to_string())),
            };
            let never = manifest.policy.never_banned(id.prefix);
            let never = never.map(|never| refuse("never_ban", never.to_string()));
            if let Some(refused) = never.or(refusal) {
                enforced.refused.push(refused);
                continue;
            }
            match bans.ban(&new) {
                Ok(_) => {
                    log_ban(id, entry);
                    enforced.allowed.push(id.clone());
                }
                Err(BanError::Datapath(error)) => return Err(error),
                Err(error) => enforced.refused.push(refuse("no_room", error.to_string())),
            }
        }
        Ok(enforced)
    })
}

fn log_ban(id: &BanId, entry: &Entry<BanState>) {
    let BanState::Banned { reason, .. } = &entry.value else {
        return;
    };
    let (prefix, node, origin) = (short(id.prefix), &entry.stamp.node, &id.origin);
    debug!(
        prefix,
        node = node.as_str(),
        origin = &**origin,
        reason = &**reason,
        "{prefix} is banned by the fleet's node {node} ({origin})"
    );
}

pub(super) fn log_refused(map: &Replicated<BanState>, refused: &[RefusedBan]) {
    for RefusedBan { id, why, .. } in refused.iter().take(NAMED) {
        let prefix = short(id.prefix);
        let node = map.get(id).map_or("?", |entry| entry.stamp.node.as_str());
        warn!(
            prefix,
            node, why, "the fleet's ban of {prefix} by node {node} is not in force here: {why}"
        );
    }
    let more = refused.len().saturating_sub(NAMED);
    if more > 0 {
        warn!(
            more,
            "more of the fleet's bans are not in force here (bans: {more})"
        );
    }
}

/// Returns the active bans of this host, before it reads the store.
pub(super) fn seeds(daemon: &Daemon) -> Result<Vec<(BanId, Seed)>, DatapathError> {
    let datapath = daemon.datapath();
    let Some(maps) = datapath.source_maps() else {
        return Ok(Vec::new());
    };
    let names = &datapath.manifest().names;
    let now = Now::new();
    let (mut seeds, mut some, mut position) = (Vec::new(), Vec::new(), None);
    loop {
        position = maps.bans().read_some(position, &mut some)?;
        let holding = some
            .drain(..)
            .filter(|(_, ban)| ban.holds(now.monotonic_ns));
        seeds.extend(holding.map(|(key, ban)| {
            let seed = Seed {
                since_ms: now.since_ms(&ban),
                state: updates::made(&ban, now.until_ms(&ban), names),
            };
            (updates::id(prefix_of(&key), &ban), seed)
        }));
        if position.is_none() {
            return Ok(seeds);
        }
    }
}
