//! The status and the explanation of an address, from the maps and the daemon's state.

use std::{collections::BTreeMap, net::IpAddr};

use limiter_common::{
    answer::Answer::Truncate, counters::LimitTraffic, limit::Cost, reason::Reason,
};
use limiter_datapath::kernel::{
    Attachment, Datapath, DatapathError, InterfacePresence, LimitBucket, Manifest, SourceStanding,
    wall_clock_now,
};
use limiter_policy::{
    interface::names,
    lists::Extents,
    policy::{
        DomainLabels, Limit, Override, Policy, QuestionNames, RequestedName, automatic::in_force,
    },
};
use limiter_protocol::{
    AutomaticRate, BansStatus, BucketsStatus, Explain, Explanation, InterfaceStatus,
    LimitExplanation, LimitStatus, PolicyStatus, Status,
};
use limiter_reputation::pressure::UsePressure;

use super::{
    bans, capacity, connections,
    labels::{BucketLabel, bucket_label},
    offenders, queues, server_names,
    shared::Daemon,
    sieves, standing,
};

/// Counts packets by reason, over all interfaces.
pub(super) fn packets(datapath: &Datapath) -> Result<Vec<(Reason, u64)>, DatapathError> {
    let count = |reason: &Reason| {
        let mut packets = 0;
        for attachment in datapath.attachments() {
            packets += datapath.reason_traffic(attachment, *reason)?.packets;
        }
        Ok((*reason, packets))
    };
    Reason::ALL.iter().map(count).collect()
}

pub(super) fn status_of(daemon: &Daemon) -> Result<Status, DatapathError> {
    let measured = daemon.enforcement.datapath.pressures.measured();
    status(&daemon.datapath(), Some(daemon), &measured)
}

pub(super) fn status(
    datapath: &Datapath,
    daemon: Option<&Daemon>,
    measured: &[UsePressure],
) -> Result<Status, DatapathError> {
    let manifest = datapath.manifest();
    let policy = &manifest.policy;
    let attachments = datapath.attachments();
    let reasons = packets(datapath)?.into_iter();
    let reasons = reasons.map(|(reason, packets)| (reason.name().to_owned(), packets));
    let reasons = reasons.collect();
    let mut limits = BTreeMap::new();
    let mut queues = queues::by_limit(datapath)?;
    let mut open = connections::open_by_limit(datapath);
    for limit in &policy.limits {
        let traffic = datapath.limit_traffic(limit.id)?;
        let automatic = capacity::status(datapath, daemon.map(|daemon| &*daemon.capacity), limit)?;
        let mut status = limit_status(limit, traffic, automatic);
        let answers = datapath.answer_traffic(limit)?.into_iter();
        let answers = answers.map(|(answer, sent)| (answer.name().to_owned(), sent.packets));
        status.answers = answers.collect();
        status.queue = queues.remove(&limit.id.0);
        status.open = open.remove(&limit.name);
        limits.insert(limit.name.clone(), status);
    }
    let [ipv4, ipv6] = match daemon {
        Some(daemon) => daemon.bans.index().holding(),
        None => bans::count(datapath)?,
    };
    let never_there = names(&manifest.interfaces).filter(|name| {
        let mut attachments = attachments.iter();
        attachments.all(|attachment| attachment.interface != **name)
    });
    let patterns = manifest.interfaces.iter();
    let patterns = patterns.filter(|name| name.is_pattern());
    Ok(Status {
        patterns: patterns.map(ToString::to_string).collect(),
        interfaces: attachments
            .iter()
            .map(|attachment| interface_status(manifest, attachment))
            .filter(|interface| interface.attached || !interface.by_pattern)
            .chain(never_there.map(|name| InterfaceStatus {
                name: name.to_owned(),
                mode: None,
                attached: false,
                renamed: None,
                elsewhere: false,
                replaced: false,
                since: None,
                fell_back: None,
                by_pattern: false,
            }))
            .collect(),
        policy: PolicyStatus {
            generation: manifest.generation,
            loaded_at: manifest.loaded_at,
            limits: policy.limits.len(),
            overrides: policy.override_count(),
            malformed: policy.malformed,
        },
        buckets: BucketsStatus {
            settings: manifest.settings.buckets,
            lossy_evictions: datapath.lossy_evictions()?,
        },
        offenders: manifest.settings.offenders,
        bans: BansStatus {
            settings: manifest.settings.bans,
            ipv4,
            ipv6,
        },
        pinned: datapath.pins().map(|pins| pins.directory().to_owned()),
        lost_pin: datapath.lost_pin(),
        daemon: daemon.map(Daemon::status),
        reasons,
        limits,
        lists: manifest.list_statuses(wall_clock_now()),
        sieves: sieves::brief(datapath, measured)?,
        standing: standing::status(datapath)?,
        connections: connections::status(datapath)?,
        server_names: server_names::status(
            datapath,
            daemon.map(|daemon| &*daemon.enforcement.datapath.naming),
        )?,
        server_names_error: datapath.flow_status().err().map(ToString::to_string),
        own_connections_error: datapath
            .own_connection_status()
            .err()
            .map(ToString::to_string),
    })
}

fn interface_status(manifest: &Manifest, attachment: &Attachment) -> InterfaceStatus {
    InterfaceStatus {
        name: attachment.interface.clone(),
        mode: Some(attachment.mode.name().to_owned()),
        attached: attachment.is_attached(),
        renamed: match &attachment.present {
            InterfacePresence::Renamed(name) => Some(name.clone()),
            InterfacePresence::Named | InterfacePresence::Elsewhere => None,
        },
        elsewhere: attachment.present == InterfacePresence::Elsewhere,
        replaced: attachment.is_replaced,
        since: Some(attachment.since),
        fell_back: attachment.fell_back.clone(),
        by_pattern: !manifest.names(&attachment.interface),
    }
}

fn limit_status(
    limit: &Limit,
    traffic: LimitTraffic,
    automatic: Option<AutomaticRate>,
) -> LimitStatus {
    let counts_connections = limit.cost == Cost::Connections;
    LimitStatus {
        mode: limit.mode,
        strategy: limit.strategy.name().to_owned(),
        cost: limit.cost.name().to_owned(),
        rate: limit.default.filter(|_| !counts_connections),
        connections: limit
            .default
            .filter(|_| counts_connections)
            .map(|rate| rate.burst),
        passed_packets: traffic.passed.packets,
        passed_bytes: traffic.passed.bytes,
        dropped_packets: traffic.dropped.packets,
        dropped_bytes: traffic.dropped.bytes,
        would_drop_packets: traffic.would_drop.packets,
        would_drop_bytes: traffic.would_drop.bytes,
        answers: BTreeMap::new(),
        automatic,
        queue: None,
        open: None,
        metrics: limit.metrics.clone(),
    }
}

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
