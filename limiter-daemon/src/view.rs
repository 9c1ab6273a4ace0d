//! The daemon as its HTTP servers read it: the control channel's responses, and some details that no response has.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_policy::policy::{Limit, id_text};
use limiter_protocol::{
    Failure, LimitExplanation, OffenderStatus,
    web::{DaemonView, LimitOverview, Lookup, Overview, SourceBlock, TrafficCounts},
};

use super::{
    automatic::Outcome,
    bans,
    explain::explain_limit,
    labels::bucket_label,
    measurements::{Censuses, measure},
    respond::MapCall,
    shared::Daemon,
    status::{packets, status},
};

/// Makes the view of a daemon.
pub(super) fn view(daemon: &Arc<Daemon>) -> DaemonView {
    let censuses = Censuses::default();
    DaemonView {
        measurements: read(daemon, move |daemon| Ok(measure(daemon, &censuses)?)),
        overview: read(daemon, |daemon| Ok(overview(daemon)?)),
        traffic: read(daemon, |daemon| Ok(traffic(&daemon.datapath())?)),
        incidents: read(daemon, |daemon| daemon.incidents.all()),
        explain: lookup(daemon, Daemon::query),
        offenders: lookup(daemon, Daemon::query),
        block: lookup(daemon, |daemon, offender| {
            Ok(block(&daemon.datapath(), offender)?)
        }),
        keys: lookup(daemon, Daemon::query),
        bans: lookup(daemon, Daemon::query),
    }
}

fn read<T>(
    daemon: &Arc<Daemon>,
    read: impl Fn(&Daemon) -> T + Send + Sync + 'static,
) -> Box<dyn Fn() -> T + Send + Sync> {
    let daemon = Arc::clone(daemon);
    Box::new(move || read(&daemon))
}

fn lookup<Q, T>(
    daemon: &Arc<Daemon>,
    lookup: impl Fn(&Daemon, &Q) -> Result<T, Failure> + Send + Sync + 'static,
) -> Lookup<Q, T> {
    let daemon = Arc::clone(daemon);
    Box::new(move |query| lookup(&daemon, query))
}

impl Daemon {
    /// Answers a request, as over the control channel.
    pub(super) fn query<C: MapCall>(&self, call: &C) -> Result<C::Response, Failure> {
        call.respond(&self.datapath(), Some(self))
    }
}

fn overview(daemon: &Daemon) -> Result<Overview, DatapathError> {
    let datapath = &*daemon.datapath();
    let mut levels = levels(datapath)?;
    let limit_overview = |limit: &Limit| LimitOverview {
        key: id_text(limit.id_format, limit.per_name),
        matching: (!limit.matching.is_everything()).then(|| limit.matching.to_string()),
        has_burst: limit.strategy.has_burst(),
        levels: (levels.extract_if(.., |level| level.limit == limit.name)).collect(),
        bans: (limit.ban.is_some()).then(|| {
            [Outcome::Banned, Outcome::WouldBan]
                .map(|outcome| daemon.automatic.of(limit.id, outcome))
        }),
        limit: limit.name.clone(),
    };
    let limits = datapath.manifest().policy.limits.iter();
    Ok(Overview {
        limits: limits.map(limit_overview).collect(),
        status: status(datapath, Some(daemon))?,
        fleet: daemon.fleet_status(),
    })
}

/// Returns the levels of the buckets of limits on all sources together.
fn levels(datapath: &Datapath) -> Result<Vec<LimitExplanation>, DatapathError> {
    let limit_buckets = datapath.total_buckets()?;
    // Such a limit has no overrides, so no address matters.
    let nobody = IpAddr::from(Ipv4Addr::UNSPECIFIED);
    let levels = limit_buckets.iter();
    Ok(levels
        .filter_map(|limit_bucket| explain_limit(datapath, nobody, limit_bucket, None))
        .collect())
}

fn traffic(datapath: &Datapath) -> Result<TrafficCounts, DatapathError> {
    let policy = &datapath.manifest().policy;
    let limits = policy.limits.iter();
    let limits = limits.map(|limit| Ok((limit.name.clone(), datapath.limit_traffic(limit.id)?)));
    Ok(TrafficCounts {
        malformed: policy.malformed,
        packets: packets(datapath)?,
        limits: limits.collect::<Result<_, DatapathError>>()?,
    })
}

/// Returns why packets of an offender do not pass; `None`: it is not an address.
fn block(
    datapath: &Datapath,
    offender: &OffenderStatus,
) -> Result<Option<SourceBlock>, DatapathError> {
    let Ok(address) = offender.id.parse::<IpAddr>() else {
        return Ok(None);
    };
    let bans = bans::of_address(datapath, address)?;
    let limit_buckets = datapath.limit_buckets(address, None, None)?;
    let retry_in_ns = limit_buckets.iter().filter_map(|limit_bucket| {
        let label = bucket_label(datapath, limit_bucket, None)?;
        (label.limit.name == offender.limit).then_some(limit_bucket.level.retry_in_ns)
    });
    Ok(Some(SourceBlock {
        ban: bans.into_iter().find(|ban| ban.excluded_by.is_none()),
        retry_in_ns: retry_in_ns.max().filter(|ns| *ns > 0),
    }))
}
