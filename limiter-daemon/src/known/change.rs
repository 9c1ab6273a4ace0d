//! Trusts and untrusts sources on request.

use std::{net::IpAddr, sync::Arc, time::Duration};

use ipnet::IpNet;
use limiter_common::standing::{Event, Kind, Record, SourceId};
use limiter_datapath::kernel::{Datapath, DatapathError, KnownSources, monotonic_now};
use limiter_policy::text::{count, short};
use limiter_protocol::{
    Failure,
    known::{KnownChange, KnownChanges, KnownOutcome, KnownResults, MAX_SOURCES},
};
use tokio::task::spawn_blocking;
use tracing::info;

use super::sources::Sources;
use crate::{listed::proven_by, shared::Daemon};

pub(crate) async fn change(
    daemon: &Arc<Daemon>,
    wanted: KnownChanges,
) -> Result<KnownResults, Failure> {
    let daemon = Arc::clone(daemon);
    let changed = spawn_blocking(move || {
        let nothing_stays = daemon.state.is_none() && daemon.datapath().pins().is_none();
        let changes = wanted.changes.iter();
        // The lock is taken for each change, so a change of the policy may come in between.
        let outcomes = changes.map(|change| one(&daemon.datapath(), change));
        let outcomes = outcomes.collect::<Result<Vec<_>, _>>();
        if let Some(state) = &daemon.state {
            state.hurry();
        }
        if let Some(fleet) = &daemon.fleet {
            fleet.note_changed_known();
        }
        let outcomes = outcomes?;
        if wanted.together {
            log(&wanted.changes, &outcomes);
        }
        let is_known = |outcome: &KnownOutcome| matches!(outcome, KnownOutcome::Trusted { .. });
        Ok::<_, DatapathError>(KnownResults {
            ends_with_daemon: nothing_stays && outcomes.iter().any(is_known),
            outcomes,
        })
    });
    match changed.await {
        Ok(changed) => Ok(changed?),
        Err(error) => Err(Failure(format!(
            "changing known sources has failed: {error}"
        ))),
    }
}

/// Changes pinned known sources, while no daemon runs.
pub fn change_known_pinned(
    datapath: &Datapath,
    wanted: &KnownChanges,
) -> Result<KnownResults, Failure> {
    let changes = wanted.changes.iter();
    let outcomes = changes.map(|change| one(datapath, change));
    Ok(KnownResults {
        outcomes: outcomes.collect::<Result<_, _>>()?,
        ends_with_daemon: false,
    })
}

/// Logs changes made by hand; a stream would log too much.
fn log(changes: &[KnownChange], outcomes: &[KnownOutcome]) {
    for (change, outcome) in changes.iter().zip(outcomes) {
        let prefix = short(change.prefix());
        match (change, outcome) {
            (KnownChange::Trust { for_ns, .. }, KnownOutcome::Trusted { sources, .. }) => {
                let length = Duration::from_nanos(*for_ns);
                info!(
                    prefix,
                    sources, "{prefix} is trusted for {length:?} (sources: {sources})"
                );
            }
            (_, KnownOutcome::Untrusted { sources, .. }) if *sources > 0 => {
                info!(
                    prefix,
                    sources, "{prefix} is forgotten (sources: {sources})"
                );
            }
            _ => {}
        }
    }
}

fn one(datapath: &Datapath, change: &KnownChange) -> Result<KnownOutcome, DatapathError> {
    let known = datapath.known_sources()?;
    let sources = Sources::of(known.settings(), change.prefix());
    match change {
        KnownChange::Trust { for_ns, .. } => trust(&known, sources, *for_ns),
        KnownChange::Untrust(prefix) => Ok(KnownOutcome::Untrusted {
            sources: untrust(&known, sources, *prefix)?,
            part_of: sources.part_of,
            proven_by: proven_by(&datapath.manifest().policy, *prefix),
        }),
    }
}

fn trust(
    known: &KnownSources<'_>,
    sources: Sources,
    for_ns: u64,
) -> Result<KnownOutcome, DatapathError> {
    // A fuller table would have little room for other sources.
    let most = MAX_SOURCES.min(known.settings().lines.into());
    if sources.count() > most {
        return Ok(refused(format!(
            "it has {} sources, and a prefix of more than {} cannot be trusted: put it in a \
             list that proves (`standing: {{proven: [LIST]}}`)",
            count(sources.count()),
            count(most)
        )));
    }
    let until_ns = monotonic_now().saturating_add(for_ns);
    let all = || {
        let all = sources.addresses().map(|address| known.source(address));
        all.filter(|source| *source != SourceId::NONE)
    };
    for source in all() {
        known.record_event(source, Event::Trust { until_ns })?;
    }
    // Counted after all changes: in a full line, one trusted source may evict another.
    let is_trusted = |source: &SourceId| known.record(*source).kind() == Kind::Trusted;
    let made = all().filter(is_trusted).count() as u64;
    let without_room = all().count() as u64 - made;
    if made + without_room == 0 {
        return Ok(refused("no packet has such a source".to_owned()));
    }
    Ok(KnownOutcome::Trusted {
        sources: made,
        without_room,
        part_of: sources.part_of,
    })
}

const fn refused(reason: String) -> KnownOutcome {
    KnownOutcome::Refused { reason }
}

/// Untrusts the sources of a prefix; returns the number of sources that were known.
fn untrust(
    known: &KnownSources<'_>,
    sources: Sources,
    prefix: IpNet,
) -> Result<u64, DatapathError> {
    let found: Vec<SourceId> = if sources.count() == 1 {
        let all = sources.addresses().map(|address| known.source(address));
        all.filter(|source| known.record(*source) != Record::NONE)
            .collect()
    } else {
        let all = known.all().map(|(source, _)| source);
        all.filter(|source| prefix.contains(&IpAddr::from(source.address())))
            .collect()
    };
    let at = known.standing_context()?;
    let mut forgotten = 0;
    for source in found {
        // An expired record does not count as known.
        let was_known = known.record(source).rank(&at) > 0;
        known.record_event(source, Event::Untrust)?;
        forgotten += u64::from(was_known);
    }
    Ok(forgotten)
}
