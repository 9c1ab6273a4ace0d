//! Reads the numbers behind the metrics. Tables that take long to count are counted seldom.

use limiter_common::{cached_names::WAYS, standing::Standing};
use limiter_datapath::kernel::{BucketUse, Datapath, DatapathError};
use limiter_protocol::web::{
    BanTotalsOfOrigin, KnownSources, LimitMeasurements, Measurements, TableUse,
};

use super::{
    automatic::Outcome,
    bans::{BanCounts, OriginKind},
    census::Census,
    shared::Daemon,
    status::{Counters, status_without_pins},
};

/// The last counts of large tables.
#[derive(Default)]
pub(super) struct Censuses {
    known_sources: Census<[u64; Standing::COUNT]>,
    cached_names: Census<Option<u64>>,
    buckets: Census<BucketUse>,
}

pub(super) fn measure(daemon: &Daemon, censuses: &Censuses) -> Result<Measurements, DatapathError> {
    let datapath = &*daemon.datapath();
    let counters = Counters::read(datapath)?;
    let offenders = datapath.offenders()?;
    let bans = daemon.bans.index().counts();
    Ok(Measurements {
        status: status_without_pins(datapath, Some(daemon), &counters)?,
        limits: limits(daemon, datapath, &counters),
        interfaces: counters.interfaces,
        buckets: censuses.buckets(datapath)?,
        recording: offenders.counts,
        offenders: offenders.remembered(),
        bans: OriginKind::NAMES
            .map(|origin| (origin, bans.holding(origin)))
            .to_vec(),
        ban_totals: ban_totals(datapath, &bans),
        fleet: daemon.fleet_status(),
        known_sources: censuses.known_sources(datapath)?,
        cached_names: censuses.cached_names(datapath)?,
    })
}

fn limits(daemon: &Daemon, datapath: &Datapath, counters: &Counters) -> Vec<LimitMeasurements> {
    let limits = datapath.manifest().policy.limits.iter();
    let limits = limits.zip(&counters.answers).map(|(limit, answers)| {
        let outcomes =
            Outcome::ALL.map(|outcome| (outcome.name(), daemon.automatic.of(limit.id, outcome)));
        LimitMeasurements {
            limit: limit.name.clone(),
            overrides: limit.overrides.len() as u64,
            answers: answers.clone(),
            bans: limit
                .ban
                .as_ref()
                .map_or_else(Vec::new, |_| outcomes.to_vec()),
        }
    });
    limits.collect()
}

fn ban_totals(datapath: &Datapath, bans: &BanCounts) -> Vec<BanTotalsOfOrigin> {
    let row = |origin_kind: OriginKind, limit: &str| BanTotalsOfOrigin {
        origin: origin_kind.name(),
        limit: limit.to_owned(),
        totals: bans.done(origin_kind),
    };
    let limits = datapath.manifest().policy.limits.iter();
    let by_limit = limits.map(|limit| row(OriginKind::limit(limit.id), &limit.name));
    let by_hand = OriginKind::BY_HAND.into_iter();
    by_hand
        .map(|origin_kind| row(origin_kind, ""))
        .chain(by_limit)
        .collect()
}

impl Censuses {
    fn buckets(&self, datapath: &Datapath) -> Result<TableUse, DatapathError> {
        let (found, _) = (self.buckets).numbers(datapath, || datapath.buckets_in_debt())?;
        Ok(TableUse {
            entries: found.in_debt,
            capacity: found.capacity,
        })
    }

    fn known_sources(&self, datapath: &Datapath) -> Result<Option<KnownSources>, DatapathError> {
        let sources = match datapath.known_sources() {
            Ok(sources) => sources,
            Err(DatapathError::NoStanding) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (by_standing, age) = self.known_sources.numbers(datapath, || sources.count())?;
        Ok(Some(KnownSources { by_standing, age }))
    }

    fn cached_names(&self, datapath: &Datapath) -> Result<Option<TableUse>, DatapathError> {
        let count = || Ok(datapath.cached_names().map(|count| count as u64));
        let (cached, _) = self.cached_names.numbers(datapath, count)?;
        let lines = datapath.manifest().policy.cached_names.lines();
        Ok(cached.map(|entries| TableUse {
            entries,
            capacity: u64::from(lines) * WAYS as u64,
        }))
    }
}
