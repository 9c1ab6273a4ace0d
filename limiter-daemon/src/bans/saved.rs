//! Saves bans to the state file and restores them.

use limiter_common::ban::Hits;
use limiter_datapath::{
    kernel::{Datapath, DatapathError, PreparedPolicy, monotonic_now, wall_clock_now},
    state::{ClockReading, SavedBan, SavedHits},
};
use limiter_policy::policy::bans::{arranged, forgotten_at, prefix_of, worth};
use tracing::{info, warn};

use super::shared_bans::{SharedBans, with_bans_of};

/// Bans restored in one batch.
const AT_ONCE: usize = 8_192;

/// Returns a number that differs after each change of the bans.
pub(crate) fn changes(datapath: &Datapath, bans: &SharedBans) -> Result<u64, DatapathError> {
    if datapath.source_maps().is_none() {
        return Ok(0);
    }
    with_bans_of(datapath, &mut bans.index(), |_, bans| Ok(bans.changes()))
}

/// Returns all bans as of a moment, including ended bans that are remembered.
pub(crate) fn save(datapath: &Datapath, at: ClockReading) -> Result<Vec<SavedBan>, DatapathError> {
    let mut saved = Vec::new();
    let Some(maps) = datapath.source_maps() else {
        return Ok(saved);
    };
    let mut some = Vec::new();
    let mut position = None;
    loop {
        position = maps.bans().read_some(position, &mut some)?;
        let bans = some.drain(..);
        saved.extend(bans.map(|(key, ban)| SavedBan::new(prefix_of(&key), &ban, at)));
        if position.is_none() {
            return Ok(saved);
        }
    }
}

/// Returns the hits of each banned prefix that has any.
pub(crate) fn save_hits(datapath: &Datapath) -> Result<Vec<SavedHits>, DatapathError> {
    let Some(maps) = datapath.source_maps() else {
        return Ok(Vec::new());
    };
    let hits = maps.bans().read_hits()?.into_iter();
    let any = hits.filter(|(_, hits)| *hits != Hits::default());
    Ok(any
        .map(|(key, hits)| SavedHits::new(prefix_of(&key), hits))
        .collect())
}

/// Restores bans and their hits before the policy is in force, except bans that would be forgotten by now.
pub(crate) fn restore(
    prepared: &PreparedPolicy,
    saved: &[SavedBan],
    hits: &[SavedHits],
) -> Result<(), DatapathError> {
    let Some(maps) = prepared.source_maps() else {
        return Ok(());
    };
    let now_ns = monotonic_now();
    let now = ClockReading::new(now_ns, wall_clock_now());
    let mut known: Vec<_> = saved
        .iter()
        .map(|ban| ban.restore(now))
        .filter(|(_, ban)| now_ns < forgotten_at(ban))
        .collect();
    let capacity = maps.bans().capacity()? as usize;
    let lost = known.len().saturating_sub(capacity);
    if lost > 0 {
        known.sort_unstable_by_key(|(_, ban)| worth(ban));
        known.truncate(capacity);
        warn!(
            lost,
            "`bans` has less room than before: some were lifted, limits' bans first, of each kind \
             those that end first (bans: {lost})"
        );
    }
    let known = arranged(known);
    let hits = hits.iter().map(SavedHits::restore).collect();
    for some in known.chunks(AT_ONCE) {
        maps.bans().insert_all(some, &hits)?;
    }
    let bans = known.len();
    if bans > 0 {
        info!(bans, "the saved bans are restored (bans: {bans})");
    }
    Ok(())
}
