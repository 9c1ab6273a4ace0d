//! The explanation of an address, from the maps.

use std::net::IpAddr;

use limiter_common::{answer::Answer::Truncate, limit::Cost};
use limiter_datapath::kernel::{Datapath, DatapathError, LimitBucket, SourceStanding};
use limiter_policy::{
    lists::Extents,
    policy::{
        DomainLabels, Limit, Override, Policy, QuestionNames, RequestedName, automatic::in_force,
    },
};
use limiter_protocol::{Explain, Explanation, LimitExplanation};

use super::{
    bans,
    labels::{BucketLabel, bucket_label},
    offenders, sieves, standing,
};

pub(super) fn explain(datapath: &Datapath, query: &Explain) -> Result<Explanation, DatapathError> {
    let (address, requested_name) = (query.address, query.requested_name.as_ref());
    let lists = datapath.manifest().policy.findings(address.into());
    let (standing, limit_buckets) = if lists.listing == Extents::default() {
        let standing = datapath.standing_of(address)?;
        (
            standing,
            datapath.limit_buckets(address, query.to, requested_name)?,
        )
    } else {
        // An excluded or blocked address spends nothing, so its standing does not matter.
        (None, Vec::new())
    };
    let name_query = requested_name.map(|requested_name| NameQuery::new(datapath, requested_name));
    let mut limits = Vec::new();
    for limit_bucket in &limit_buckets {
        let Some(mut limit) = explain_limit(datapath, address, limit_bucket, name_query.as_ref())
        else {
            continue;
        };
        limit.waiting = datapath.waiting(&limit_bucket.key)?;
        if let Some(SourceStanding { standing, .. }) = standing {
            limit.other_standing = !datapath.counts(limit_bucket, standing);
            limit.reserve = standing::reserve(datapath, limit_bucket, standing)?;
        }
        if limit.answer.is_some() {
            let standing = standing.map(|standing| standing.standing);
            let answer = datapath.answer_to(limit_bucket, standing);
            limit.answer = (!limit.other_standing).then_some(answer);
            limit.slip = limit.slip.filter(|_| answer == Truncate);
        }
        limits.push(limit);
    }
    let settings = datapath.manifest().policy.standing_in_use();
    let standing = standing.zip(settings);
    Ok(Explanation {
        address,
        standing: standing
            .map(|(standing, settings)| standing::explain(&standing, settings.ipv6_prefix)),
        limits,
        lists,
        bans: bans::of_address(datapath, address)?,
        last_drop: offenders::last_drop(datapath, address)?,
        own_connections: own_connections(datapath, address)?,
        sieves: sieves::explain(datapath, address)?,
    })
}

/// Counts the connections that this host opened to an address; `None`: the policy does not exempt them, or there is
/// nothing to exempt them from.
fn own_connections(datapath: &Datapath, address: IpAddr) -> Result<Option<u64>, DatapathError> {
    let exempts = datapath.manifest().policy.exempts_own_connections();
    let Some(maps) = datapath.source_maps().filter(|_| exempts) else {
        return Ok(None);
    };
    let count = maps.own_connections().count_to(&address.into())?;
    Ok(Some(count as u64))
}

/// The question or server name that an operator asks about.
pub(super) struct NameQuery<'a> {
    requested_name: &'a RequestedName,
    /// The texts of a question.
    names: Option<QuestionNames>,
    /// The public suffixes of the policy in force.
    suffixes: DomainLabels,
}

impl<'a> NameQuery<'a> {
    fn new(datapath: &Datapath, requested_name: &'a RequestedName) -> Self {
        let suffixes = DomainLabels::new(&datapath.manifest().policy.public_suffixes);
        let question = requested_name.question();
        Self {
            requested_name,
            names: question.map(|question| question.names(&suffixes)),
            suffixes,
        }
    }

    /// Returns the override of a limit that applies to the packets, which come from an address.
    fn override_of<'l>(
        &self,
        policy: &Policy,
        limit: &'l Limit,
        address: IpAddr,
    ) -> Option<&'l Override> {
        match policy.name_charged(limit, self.requested_name, &self.suffixes) {
            Some(name) => policy.override_by_name(limit, address, &name),
            None => policy.override_of(limit, address),
        }
    }
}

pub(super) fn explain_limit(
    datapath: &Datapath,
    address: IpAddr,
    limit_bucket: &LimitBucket,
    name_query: Option<&NameQuery<'_>>,
) -> Option<LimitExplanation> {
    let BucketLabel {
        limit,
        id,
        interface,
    } = bucket_label(
        datapath,
        limit_bucket,
        name_query.and_then(|name_query| name_query.names.as_ref()),
    )?;
    let policy = &datapath.manifest().policy;
    let other = match name_query {
        Some(name_query) => name_query.override_of(policy, limit, address),
        None => policy.override_of(limit, address),
    };
    let (source, rate) = match other {
        Some(other) => (format!("override {}", other.id), other.rate),
        None if limit.ceiling.is_some() => {
            let rate = in_force(&limit_bucket.parameters.gcra);
            ("automatic".to_owned(), rate)
        }
        None if limit.fleet_nodes.is_some() => ("fleet".to_owned(), limit.default?),
        None => ("default".to_owned(), limit.default?),
    };
    let rate = (limit_bucket.share).map_or(rate, |share| rate.of_share(share));
    Some(LimitExplanation {
        limit: limit.name.clone(),
        id,
        interface,
        mode: limit.mode,
        strategy: limit.strategy.name().to_owned(),
        matching: (!limit.matching.is_everything()).then(|| limit.matching.to_string()),
        other_standing: false,
        reserve: None,
        answer: limit.answers().map(|deny| deny.other),
        slip: (limit.answers().map(|deny| deny.slip)).filter(|slip| *slip > 1),
        source,
        connections: (limit.cost == Cost::Connections)
            .then(|| rate.burst.saturating_sub(limit_bucket.level.remaining)),
        waiting: None,
        burst: limit.strategy.has_burst().then_some(rate.burst),
        count: rate.count,
        period_ns: rate.period_ns,
        remaining: limit_bucket.level.remaining,
        retry_in_ns: limit_bucket.level.retry_in_ns,
        reset_in_ns: limit_bucket.level.reset_in_ns,
    })
}
