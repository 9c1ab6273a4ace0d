//! Writes the proofs of other nodes to the kernel's table.

use limiter_common::standing::{Event, Kind, Record};
use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_fleet::{
    replicated::Replicated,
    sources::{Proof, Source},
};

use super::{super::updates::Now, convert};
use crate::daemon::shared::Daemon;

/// How many sources to change before another thread may change the policy.
const SOME: usize = 256;

/// The most sources to restore at once: the table may be full.
const MOST_LOST: usize = 10_000;

/// Writes the winning proof of each of some sources to the table.
pub(super) fn enforce(
    daemon: &Daemon,
    map: &Replicated<Proof>,
    sources: &[Source],
) -> Result<(), DatapathError> {
    for some in sources.chunks(SOME) {
        match enforce_some(&daemon.datapath(), map, some) {
            Ok(()) | Err(DatapathError::NoStanding) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn enforce_some(
    datapath: &Datapath,
    map: &Replicated<Proof>,
    sources: &[Source],
) -> Result<(), DatapathError> {
    let known = datapath.known_sources()?;
    let at = known.standing_context()?;
    let now_ms = Now::new().ms;
    for source in sources {
        let id = convert::id(*source, known.settings());
        let proof = map.proof(*source, now_ms);
        let record = proof.map_or(Record::NONE, |proof| {
            convert::record(&proof, &at, now_ms / 1_000)
        });
        let present = known.record(id);
        let is_over = proof.is_none() && present.kind() != Kind::Reported;
        if present != record && !is_over {
            known.record_event(id, Event::Reported { record })?;
        }
    }
    Ok(())
}

/// Restores sources proven by another node that the table has lost: they were forgotten, or evicted.
pub(super) fn enforce_lost(daemon: &Daemon, map: &Replicated<Proof>) -> Result<(), DatapathError> {
    let lost: Vec<_> = {
        let datapath = daemon.datapath();
        let known = match datapath.known_sources() {
            Ok(known) => known,
            Err(DatapathError::NoStanding) => return Ok(()),
            Err(error) => return Err(error),
        };
        let is_lost =
            |source: &Source| known.record(convert::id(*source, known.settings())) == Record::NONE;
        map.sources().filter(is_lost).take(MOST_LOST).collect()
    };
    enforce(daemon, map, &lost)
}

/// Removes sources learned from other nodes before this daemon started, if no node proves them
/// now. Scans the whole table.
pub(super) fn forget_unclaimed(
    daemon: &Daemon,
    map: &Replicated<Proof>,
) -> Result<(), DatapathError> {
    let received: Vec<_> = {
        let datapath = daemon.datapath();
        let known = match datapath.known_sources() {
            Ok(known) => known,
            Err(DatapathError::NoStanding) => return Ok(()),
            Err(error) => return Err(error),
        };
        let all = known.all();
        let received = all.filter(|(_, record)| record.kind() == Kind::Reported);
        received.map(|(id, _)| convert::source(id)).collect()
    };
    let now_ms = Now::new().ms;
    let unclaimed: Vec<_> = received
        .into_iter()
        .filter(|source| map.proof(*source, now_ms).is_none())
        .collect();
    enforce(daemon, map, &unclaimed)
}
