//! The standing of sources: traffic by standing, and the standing of one address.

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::IpNet;
use limiter_common::{
    address::Family,
    counters::LimitTraffic,
    limit::LimitId,
    standing::{Kind, Shortage, SourceId, Standing, Tick},
};
use limiter_datapath::kernel::{
    Datapath, DatapathError, LimitBucket, SourceStanding, monotonic_now,
};
use limiter_protocol::{
    ReserveExplanation, ShortageStatus, StandingExplanation, StandingReason, StandingStatus,
    StandingTraffic, counted_standings,
};

/// Returns the traffic and the known sources by standing; `None`: the policy in force uses no standing.
pub(super) fn status(datapath: &Datapath) -> Result<Option<StandingStatus>, DatapathError> {
    let known = match datapath.known_sources() {
        Ok(known) => known,
        Err(DatapathError::NoStanding) => return Ok(None),
        Err(error) => return Err(error),
    };
    let limits = datapath.manifest().policy.limits.iter();
    let limits = limits
        .filter(|limit| limit.reserves())
        .map(|limit| Ok((limit.name.clone(), traffic_by_standing(datapath, limit.id)?)));
    Ok(Some(StandingStatus {
        shortage: shortage(known.shortage()?, Tick::of_ns(monotonic_now())),
        handshakes_error: (datapath.handshake_status().err()).map(ToString::to_string),
        limits: limits.collect::<Result<_, DatapathError>>()?,
        dns_cookies: dns_cookies(datapath)?,
    }))
}

/// Returns the number of queries by the result of their DNS cookies' check; empty: cookies are not checked.
fn dns_cookies(datapath: &Datapath) -> Result<BTreeMap<String, u64>, DatapathError> {
    let checks = datapath.cookie_checks()?.into_iter();
    Ok(checks
        .map(|(check, count)| (check.name().to_owned(), count))
        .collect())
}

/// Returns the traffic by standing of a limit that reserves, in the order of [`counted_standings`].
fn traffic_by_standing(
    datapath: &Datapath,
    limit: LimitId,
) -> Result<Vec<StandingTraffic>, DatapathError> {
    // The parts are read first, so that their sum does not exceed the total.
    let of_each = datapath.standing_traffic(limit)?;
    let mut asked = LimitTraffic::default();
    for part in &of_each {
        asked += *part;
    }
    let unasked = datapath.limit_traffic(limit)?.without(asked);
    let traffic = of_each.into_iter().chain([unasked]);
    let by_standing = counted_standings().zip(traffic);
    Ok(by_standing
        .map(|(standing, traffic)| StandingTraffic::new(standing, &traffic))
        .collect())
}

pub(super) fn explain(standing: &SourceStanding, ipv6_prefix: u8) -> StandingExplanation {
    let SourceStanding {
        source,
        record,
        now,
        ..
    } = standing;
    let why = match record.kind() {
        _ if standing.is_listed => StandingReason::List,
        Kind::Nothing => StandingReason::Nothing,
        Kind::Visited | Kind::Familiar => StandingReason::Visits,
        Kind::Retried => StandingReason::Retry,
        Kind::Proven => StandingReason::Handshake,
        Kind::Trusted => StandingReason::Trusted,
        Kind::Reported => StandingReason::Fleet,
    };
    let is_recorded = !matches!(why, StandingReason::List | StandingReason::Nothing);
    let (has_end, visited) = (
        standing.ends_in_ns.is_some(),
        record.kind() == Kind::Visited,
    );
    StandingExplanation {
        source: prefix_of(*source, ipv6_prefix),
        standing: standing.standing,
        why,
        fresh: standing.standing == Standing::Fresh,
        visits: record.visits(),
        gained_ago_ns: (is_recorded && !has_end && !visited)
            .then(|| standing.ns_since(record.since())),
        ends_in_ns: standing.ends_in_ns.filter(|_| is_recorded),
        // A record from another node tells of no visit here.
        last_visit_ago_ns: (is_recorded && why != StandingReason::Fleet)
            .then(|| standing.ns_since(record.last())),
        shortage: shortage(standing.shortage, *now),
    }
}

/// Explains the reserved part of an address's bucket; `None`: the limit reserves nothing.
pub(super) fn reserve(
    datapath: &Datapath,
    limit_bucket: &LimitBucket,
    standing: Standing,
) -> Result<Option<ReserveExplanation>, DatapathError> {
    let reserved = datapath.reserved(limit_bucket, standing)?;
    Ok(reserved.map(|reserved| ReserveExplanation {
        tokens: reserved.tokens,
        passes: reserved.retry_in_ns == 0,
        retry_in_ns: reserved.retry_in_ns,
    }))
}

/// Returns a source as a prefix.
pub(super) fn prefix_of(source: SourceId, ipv6_prefix: u8) -> IpNet {
    let first = source.address();
    let length = match first.family {
        Family::V4 => 32,
        Family::V6 => ipv6_prefix,
    };
    // The length never exceeds the address's.
    IpNet::new_assert(IpAddr::from(first), length)
}

/// Describes the present shortage; `None`: there is none.
pub(super) fn shortage(shortage: Shortage, now: Tick) -> Option<ShortageStatus> {
    let ago = |tick| u64::from(now.since(tick)) << Tick::BITS;
    shortage.holds(now).then(|| ShortageStatus {
        began_ago_ns: ago(shortage.began()),
        last_refused_ago_ns: ago(shortage.renewed()),
    })
}
