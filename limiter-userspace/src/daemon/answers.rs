//! Answers to the requests that come over the control channel.

use std::{collections::BTreeMap, error::Error, net::IpAddr};

use limiter_common::{bucket::Owner, counters::LimitTraffic, reason::Reason};

use super::{Daemon, StateKeeper, offenders, refill};
use crate::{
    control::protocol::{
        Answer, BucketsStatus, Explanation, InterfaceStatus, LimitExplanation, LimitStatus,
        PolicyStatus, Request, Status,
    },
    datapath::{DatapathError, Holding},
    policy::{Limit, owner_id},
};

pub(super) fn answer(daemon: &Daemon, request: Request) -> Answer {
    match request {
        Request::Status => told(status(daemon).map(Answer::Status)),
        Request::Explain { address } => told(explain(daemon, address).map(Answer::Explanation)),
        Request::Offenders(query) => told(offenders::list(daemon, &query).map(Answer::Offenders)),
        Request::Reset(query) => told(refill::reset(daemon, &query).map(Answer::Refilled)),
        Request::Refund(query) => told(refill::refund(daemon, &query).map(Answer::Refilled)),
    }
}

fn told(answer: Result<Answer, impl Error>) -> Answer {
    answer.unwrap_or_else(|error| Answer::Error(error.to_string()))
}

fn status(daemon: &Daemon) -> Result<Status, DatapathError> {
    let attachments = daemon.datapath.attachments();
    let mut reasons = BTreeMap::new();
    for reason in Reason::ALL {
        let mut packets = 0;
        for attachment in attachments {
            packets += daemon.datapath.reason_traffic(attachment, *reason)?.packets;
        }
        reasons.insert(reason.name().to_owned(), packets);
    }
    let mut limits = BTreeMap::new();
    for limit in &daemon.policy.limits {
        let traffic = daemon.datapath.limit_traffic(limit.id)?;
        limits.insert(limit.name.clone(), limit_status(limit, traffic));
    }
    let buckets = daemon.datapath.settings().buckets;
    Ok(Status {
        interfaces: attachments
            .iter()
            .map(|attachment| InterfaceStatus {
                name: attachment.interface.clone(),
                mode: attachment.mode.name().to_owned(),
                attached: attachment.exists(),
                since: attachment.since,
                fell_back: attachment.fell_back.clone(),
            })
            .collect(),
        policy: PolicyStatus {
            generation: daemon.generation,
            limits: daemon.policy.limits.len(),
            overrides: daemon.policy.override_count(),
            malformed: daemon.policy.malformed.name().to_owned(),
        },
        buckets: BucketsStatus {
            store: buckets.store.name().to_owned(),
            capacity: buckets.capacity,
            lossy_evictions: daemon.datapath.lossy_evictions()?,
        },
        state: daemon.state.as_ref().map(StateKeeper::status),
        reasons,
        limits,
    })
}

fn limit_status(limit: &Limit, traffic: LimitTraffic) -> LimitStatus {
    LimitStatus {
        mode: limit.mode.name().to_owned(),
        passed_packets: traffic.passed.packets,
        passed_bytes: traffic.passed.bytes,
        dropped_packets: traffic.dropped.packets,
        dropped_bytes: traffic.dropped.bytes,
        would_drop_packets: traffic.would_drop.packets,
        would_drop_bytes: traffic.would_drop.bytes,
    }
}

fn explain(daemon: &Daemon, address: IpAddr) -> Result<Explanation, DatapathError> {
    let holdings = daemon.datapath.holdings(address)?;
    let limits = holdings
        .iter()
        .filter_map(|holding| explain_limit(daemon, address, holding));
    Ok(Explanation {
        address,
        limits: limits.collect(),
        last_drop: offenders::last_drop(daemon, address)?,
    })
}

fn explain_limit(daemon: &Daemon, address: IpAddr, holding: &Holding) -> Option<LimitExplanation> {
    let limit = daemon.policy.limits.get(holding.slot as usize)?;
    let (source, rate) = match daemon.policy.override_of(limit, address) {
        Some(other) => (format!("override {}", other.id), other.rate),
        None => ("default".to_owned(), limit.default?),
    };
    let owner = holding.key.owner();
    let interface = match owner {
        Owner::Interface(number) => daemon.datapath.interface_name(number)?,
        _ => "",
    };
    Some(LimitExplanation {
        limit: limit.name.clone(),
        id: owner_id(&owner, interface),
        mode: limit.mode.name().to_owned(),
        matching: (!limit.matching.is_everything()).then(|| limit.matching.to_string()),
        source,
        burst: rate.burst,
        count: rate.count,
        period_ns: rate.period_ns,
        remaining: holding.level.remaining,
        retry_in_ns: holding.level.retry_in_ns,
        reset_in_ns: holding.level.reset_in_ns,
    })
}
