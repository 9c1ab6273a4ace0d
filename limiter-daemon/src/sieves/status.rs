//! Describes sieves for requests.

use std::net::IpAddr;

use limiter_common::limit::Cost;
use limiter_datapath::kernel::{Datapath, DatapathError, LoadedSieve, monotonic_now};
use limiter_policy::{
    config::nearest::UnknownName,
    policy::{Mode, Policy, SieveUse},
};
use thiserror::Error;

use limiter_protocol::sieves::{SieveBrief, SieveExplanation, SieveStatus, SieveUseStatus};
use limiter_reputation::{
    pressure::{Load, Threshold, UsePressure, rejected_from},
    sieve_lists::{entry, lists},
};

#[derive(Debug, Error)]
pub(crate) enum SieveError {
    /// No sieve has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The sieves could not be read.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Returns the sieve of that name, or all of them. `measured`: the daemon's pressures; empty if no daemon runs.
pub(crate) fn list(
    datapath: &Datapath,
    name: Option<&str>,
    measured: &[UsePressure],
) -> Result<Vec<SieveStatus>, SieveError> {
    let policy = &datapath.manifest().policy;
    if let Some(name) = name
        && policy.sieves.iter().all(|sieve| sieve.name != name)
    {
        let known = policy.sieves.iter().map(|sieve| sieve.name.as_str());
        return Err(UnknownName::new("sieve", name, known).into());
    }
    let now_ns = monotonic_now();
    let briefs = brief(datapath, measured)?.into_iter();
    let wanted = briefs.filter(|brief| name.is_none_or(|name| brief.sieve == name));
    let statuses = wanted.map(|brief| {
        let mut loaded = datapath.sieves();
        let loaded = loaded.find(|loaded| loaded.configured.name == brief.sieve);
        SieveStatus {
            lists: loaded.map_or_else(Vec::new, |loaded| {
                let LoadedSieve {
                    configured,
                    compiled,
                    memory,
                    ..
                } = loaded;
                lists(configured, compiled, &memory, now_ns)
            }),
            brief,
        }
    });
    Ok(statuses.collect())
}

pub(crate) fn brief(
    datapath: &Datapath,
    measured: &[UsePressure],
) -> Result<Vec<SieveBrief>, DatapathError> {
    let policy = &datapath.manifest().policy;
    let now_ns = monotonic_now();
    let uses = policy.sieve_uses();
    let sieves = (0..).zip(&policy.sieves);
    let briefs = sieves.map(|(number, sieve)| {
        let uses = uses.iter().filter(|used| used.sieve == Some(number));
        let uses = uses.map(|used| {
            let (traffic, pressure) = datapath.sieve_use(*used, now_ns)?;
            let limit = policy
                .limits
                .iter()
                .find(|limit| Some(limit.id) == used.limit);
            let threshold = Threshold::of(policy, sieve, *used);
            let one = measured.iter().find(|one| one.used == *used);
            let percent = one.and_then(|one| one.load).map(Load::percent);
            let most = threshold.map(|threshold| threshold.most());
            let active = percent
                .zip(most)
                .map(|(percent, most)| percent / 100.0 * most);
            let is_rate = threshold.is_some_and(|threshold| threshold.cost != Cost::Connections);
            let (in_a_second, at_once) = if is_rate {
                ((most, active), (None, None))
            } else {
                ((None, None), (most, active))
            };
            Ok(SieveUseStatus {
                limit: limit.map(|limit| limit.name.clone()),
                observes: is_observing(policy, *used),
                cost: threshold.map(|threshold| threshold.cost.name().to_owned()),
                limit_per_second: in_a_second.0,
                active_per_second: in_a_second.1,
                limit_open: at_once.0,
                active_open: at_once.1,
                percent,
                pressure,
                arrived_packets: traffic.arrived.packets,
                iprep_packets: traffic.iprep.packets,
                iprep_perma_packets: traffic.iprep_perma.packets,
                scored_packets: traffic.scored,
                contended_packets: traffic.contended,
            })
        });
        let loaded = datapath.sieves().find(|loaded| loaded.number == number);
        let counts = loaded.map(|loaded| loaded.memory.counts(loaded.compiled));
        Ok(SieveBrief {
            sieve: sieve.name.clone(),
            buckets: sieve.buckets,
            size: sieve.size,
            percentage: sieve.percentage.percents(),
            entries: counts.into_iter().flatten().sum(),
            uses: uses.collect::<Result<_, DatapathError>>()?,
        })
    });
    briefs.collect()
}

/// Whether `used` belongs to a limit that only observes.
fn is_observing(policy: &Policy, used: SieveUse) -> bool {
    let mut limits = policy.limits.iter();
    limits.any(|limit| Some(limit.id) == used.limit && limit.mode == Mode::Observe)
}

/// Explains the scores that sieves give an address, except for sieves that would not score it.
pub(crate) fn explain(
    datapath: &Datapath,
    address: IpAddr,
) -> Result<Vec<SieveExplanation>, DatapathError> {
    let policy = &datapath.manifest().policy;
    let mut uses = policy.sieve_uses();
    uses.retain(|used| datapath.may_be_scored(address, *used));
    let explanations = datapath.sieves().filter_map(|loaded| {
        let uses = uses.iter().filter(|used| used.sieve == Some(loaded.number));
        let uses: Vec<_> = uses.copied().collect();
        (!uses.is_empty()).then(|| explain_by(datapath, &loaded, &uses, address))
    });
    explanations.collect()
}

/// Explains the score that a sieve gives an address, which these uses of it may score.
fn explain_by(
    datapath: &Datapath,
    loaded: &LoadedSieve<'_>,
    uses: &[SieveUse],
    address: IpAddr,
) -> Result<SieveExplanation, DatapathError> {
    let now_ns = monotonic_now();
    let sieve = loaded.configured;
    let found = datapath.sieved(loaded, address);
    let listed = found.filter(|(list, _)| *list <= sieve.buckets.into());
    let list = listed.and_then(|(list, _)| u8::try_from(list).ok());
    // A new source would enter the entry list, which is never rejected.
    let in_list = list.unwrap_or(sieve.buckets);
    let policy = &datapath.manifest().policy;
    let mut enforcing = uses.iter().filter(|used| !is_observing(policy, **used));
    let observed = enforcing.clone().next().is_none();
    let pressure = enforcing.try_fold(None, |highest: Option<u8>, used| {
        let (_, pressure) = datapath.sieve_use(*used, now_ns)?;
        Ok::<_, DatapathError>(highest.max(pressure))
    })?;
    Ok(SieveExplanation {
        sieve: sieve.name.clone(),
        list,
        entry: listed.map(|(_, listed)| entry(sieve, &listed, now_ns)),
        rejected_with: (in_list < sieve.buckets).then(|| in_list + 1),
        rejected_from_percent: rejected_from(in_list, sieve.percentage, sieve.buckets),
        rejected: pressure.is_some_and(|pressure| pressure > in_list),
        observed,
    })
}
