//! The status, from the maps and the daemon's state.

use std::collections::BTreeMap;

use limiter_common::{
    answer::Answer,
    counters::{LimitTraffic, Traffic},
    limit::Cost,
    reason::Reason,
};
use limiter_datapath::kernel::{
    Attachment, Datapath, DatapathError, InterfacePresence, Manifest, wall_clock_now,
};
use limiter_policy::{interface::names, policy::Limit};
use limiter_protocol::{
    AutomaticRate, BansStatus, BucketsStatus, InterfaceStatus, LimitStatus, PolicyStatus, Status,
    web::InterfaceTraffic,
};

use super::{bans, capacity, connections, queues, server_names, shared::Daemon, sieves, standing};

/// Counters of which the status and the measurements show different parts, read once for both.
pub(super) struct Counters {
    pub(super) interfaces: Vec<InterfaceTraffic>,
    /// The sent answers, in the policy's order of limits.
    pub(super) answers: Vec<Vec<(Answer, Traffic)>>,
}

impl Counters {
    pub(super) fn read(datapath: &Datapath) -> Result<Self, DatapathError> {
        let limits = datapath.manifest().policy.limits.iter();
        let answers = limits.map(|limit| datapath.answer_traffic(limit));
        Ok(Self {
            interfaces: interfaces(datapath)?,
            answers: answers.collect::<Result<_, _>>()?,
        })
    }
}

fn interfaces(datapath: &Datapath) -> Result<Vec<InterfaceTraffic>, DatapathError> {
    let attachments = datapath.attachments().iter();
    let interfaces = attachments.map(|attachment| {
        let reasons = Reason::ALL.iter();
        let reasons =
            reasons.map(|reason| Ok((*reason, datapath.reason_traffic(attachment, *reason)?)));
        Ok(InterfaceTraffic {
            interface: attachment.interface.clone(),
            reasons: reasons.collect::<Result<_, DatapathError>>()?,
        })
    });
    interfaces.collect()
}

/// Counts packets by reason, over all interfaces, in the order of [`Reason::ALL`].
pub(super) fn packets(datapath: &Datapath) -> Result<Vec<u64>, DatapathError> {
    Ok(sums(&interfaces(datapath)?))
}

fn sums(interfaces: &[InterfaceTraffic]) -> Vec<u64> {
    let mut packets = vec![0; Reason::ALL.len()];
    for interface in interfaces {
        for (sum, (_, traffic)) in packets.iter_mut().zip(&interface.reasons) {
            *sum += traffic.packets;
        }
    }
    packets
}

/// Returns the whole status. `daemon`: `None` if none runs.
pub(super) fn status(
    datapath: &Datapath,
    daemon: Option<&Daemon>,
) -> Result<Status, DatapathError> {
    let status = status_without_pins(datapath, daemon, &Counters::read(datapath)?)?;
    Ok(Status {
        lost_pin: datapath.lost_pin(),
        ..status
    })
}

/// Returns the status, except a lost pin: the search opens each pin.
pub(super) fn status_without_pins(
    datapath: &Datapath,
    daemon: Option<&Daemon>,
    counters: &Counters,
) -> Result<Status, DatapathError> {
    let manifest = datapath.manifest();
    let policy = &manifest.policy;
    let attachments = datapath.attachments();
    let reasons = Reason::ALL.iter().zip(sums(&counters.interfaces));
    let reasons = reasons.map(|(reason, packets)| (reason.name().to_owned(), packets));
    let mut limits = BTreeMap::new();
    let mut queues = queues::by_limit(datapath)?;
    let mut open = connections::open_by_limit(datapath);
    for (limit, answers) in policy.limits.iter().zip(&counters.answers) {
        let traffic = datapath.limit_traffic(limit.id)?;
        let automatic = capacity::status(datapath, daemon.map(|daemon| &*daemon.capacity), limit)?;
        let mut status = limit_status(limit, traffic, automatic);
        let answers = answers.iter();
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
        lost_pin: None,
        daemon: daemon.map(Daemon::status),
        reasons: reasons.collect(),
        limits,
        lists: manifest.list_statuses(wall_clock_now()),
        sieves: sieves::brief(datapath, &daemon.map(Daemon::pressures).unwrap_or_default())?,
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
