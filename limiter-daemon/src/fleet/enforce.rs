//! Enforces bans of other nodes, unless this node's guard or policy forbids them.

use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{
    bans::{BanId, BanState},
    replicated::{Entry, Replicated},
};
use limiter_host::guard::ProtectedAddresses;
use limiter_policy::{
    policy::bans::{Origin, prefix_of},
    text::short,
};
use tracing::{debug, warn};

use super::updates::{self, Now};
use crate::{
    bans::{BanError, SharedBans},
    guard::GuardError,
    shared_datapath::SharedDatapath,
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

/// Enforces the last update about some bans; returns the ones that are refused here.
pub(super) fn enforce(
    bans: &SharedBans,
    map: &Replicated<BanState>,
    ids: &[BanId],
    protected: &Result<ProtectedAddresses, GuardError>,
) -> Result<Vec<RefusedBan>, DatapathError> {
    let now = Now::new();
    bans.change(|datapath, bans| {
        bans.skip_journal();
        let manifest = datapath.manifest();
        let mut all_refused = Vec::new();
        for id in ids {
            let Some(entry) = map.get(id) else {
                continue;
            };
            let new = updates::new_ban(id, &entry.value, &manifest.names, now);
            let Some(new) = new.filter(|_| entry.holds(now.ms)) else {
                if let Ok(origin) = id.origin.parse::<Origin>() {
                    bans.unban(id.prefix, Some(&origin))?;
                }
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
                all_refused.push(refused);
                continue;
            }
            match bans.ban(&new) {
                Ok(_) => log_ban(id, entry),
                Err(BanError::Datapath(error)) => return Err(error),
                Err(error) => all_refused.push(refuse("no_room", error.to_string())),
            }
        }
        Ok(all_refused)
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

/// Notes the active bans of this host, before it reads the store.
pub(super) fn seed(
    datapath: &SharedDatapath,
    map: &mut Replicated<BanState>,
) -> Result<(), DatapathError> {
    let datapath = datapath.read();
    let Some(maps) = datapath.source_maps() else {
        return Ok(());
    };
    let names = &datapath.manifest().names;
    let now = Now::new();
    let (mut some, mut position) = (Vec::new(), None);
    loop {
        position = maps.bans().read_some(position, &mut some)?;
        for (key, ban) in some
            .drain(..)
            .filter(|(_, ban)| ban.holds(now.monotonic_ns))
        {
            let id = updates::id(prefix_of(&key), &ban);
            let state = updates::made(&ban, now.until_ms(&ban), names);
            map.seed(id, now.since_ms(&ban), state);
        }
        if position.is_none() {
            return Ok(());
        }
    }
}
