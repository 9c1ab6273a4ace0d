//! The answer to who was dropped, by which limit, and how often.

use std::{cmp::Reverse, collections::HashMap, net::IpAddr};

use limiter_common::{
    address::{Address, Family},
    bucket::Owner,
    limit::LimitId,
    offender::Offender,
};
use thiserror::Error;

use super::Daemon;
use crate::{
    config::{Offenders, nearest},
    control::protocol::{
        Grouping, LastDrop, MAX_OFFENDERS, OffenderList, OffenderQuery, OffenderStatus,
    },
    datapath::{DatapathError, monotonic_now},
    policy::{Policy, owner_id},
};

/// Offenders cannot be told.
#[derive(Debug, Error)]
pub(super) enum OffendersError {
    /// Nobody is recorded.
    #[error(
        "offenders are not recorded: the configuration has `offenders: {{capacity: 0}}`; give it \
         room, such as 65536, and start the daemon again"
    )]
    Off,
    /// No such limit.
    #[error("{0}")]
    UnknownLimit(String),
    /// They could not be read.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Those dropped most, with the most drops first.
pub(super) fn list(daemon: &Daemon, query: &OffenderQuery) -> Result<OffenderList, OffendersError> {
    let capacity = daemon.datapath.settings().offenders;
    if capacity == Offenders::OFF {
        return Err(OffendersError::Off);
    }
    let limit = match &query.limit {
        Some(name) => Some(limit_named(&daemon.policy, name)?),
        None => None,
    };
    let recorded = daemon.datapath.offenders().read()?;
    let now = monotonic_now();
    let mut groups = HashMap::<(u16, Address), Group>::new();
    for (key, offender) in &recorded.offenders {
        if limit.is_none_or(|limit| limit.0 == key.limit) {
            let address = key.address();
            let of = address.masked(prefix_length(query.by, address.family));
            groups
                .entry((key.limit, of))
                .and_modify(|group| group.add(offender))
                .or_insert(Group::of(*offender));
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_unstable_by_key(|((limit, address), group)| {
        (
            Reverse((group.total.drops, group.total.last_drop_ns)),
            *limit,
            IpAddr::from(*address),
        )
    });
    groups.truncate(query.count.min(MAX_OFFENDERS) as usize);
    let name = |id| {
        let mut limits = daemon.policy.limits.iter();
        limits.find(|limit| limit.id == LimitId(id))
    };
    Ok(OffenderList {
        capacity: capacity.capacity,
        remembered: recorded.offenders.len() as u64,
        forgotten: recorded.forgotten(),
        recorded: recorded.counts.recorded,
        skipped: recorded.counts.skipped,
        lower_bound: recorded.is_lower_bound(),
        offenders: groups
            .into_iter()
            .filter_map(|((limit, address), group)| {
                let owner = Owner::Source {
                    address,
                    prefix_length: prefix_length(query.by, address.family),
                };
                Some(OffenderStatus {
                    limit: name(limit)?.name.clone(),
                    id: owner_id(&owner, ""),
                    addresses: group.addresses,
                    drops: group.total.drops,
                    first_drop_ago_ns: now.saturating_sub(group.total.first_drop_ns),
                    last_drop_ago_ns: now.saturating_sub(group.total.last_drop_ns),
                })
            })
            .collect(),
    })
}

/// The last drop of an address that is remembered, whatever limit dropped it.
pub(super) fn last_drop(
    daemon: &Daemon,
    address: IpAddr,
) -> Result<Option<LastDrop>, DatapathError> {
    let recorded = daemon.datapath.offenders().read()?;
    let now = monotonic_now();
    let address = Address::from(address);
    let of_address = recorded
        .offenders
        .iter()
        .filter(|(key, _)| key.address() == address);
    Ok(of_address
        .max_by_key(|(_, offender)| offender.last_drop_ns)
        .and_then(|(key, offender)| {
            let mut limits = daemon.policy.limits.iter();
            let limit = limits.find(|limit| limit.id == LimitId(key.limit))?;
            Some(LastDrop {
                limit: limit.name.clone(),
                drops: offender.drops,
                lower_bound: recorded.is_lower_bound(),
                first_drop_ago_ns: now.saturating_sub(offender.first_drop_ns),
                last_drop_ago_ns: now.saturating_sub(offender.last_drop_ns),
            })
        }))
}

fn limit_named(policy: &Policy, name: &str) -> Result<LimitId, OffendersError> {
    let names: Vec<_> = policy.limits.iter().map(|limit| &*limit.name).collect();
    let found = policy.limits.iter().find(|limit| limit.name == name);
    found
        .map(|limit| limit.id)
        .ok_or_else(|| OffendersError::UnknownLimit(nearest::unknown("limit", name, &names)))
}

/// How many leading bits of an address name the row that it belongs to.
const fn prefix_length(by: Grouping, family: Family) -> u8 {
    match (by, family) {
        (Grouping::Address, Family::V4) => 32,
        (Grouping::Address, Family::V6) => 128,
        (Grouping::Range, Family::V4) => 24,
        (Grouping::Range, Family::V6) => 64,
    }
}

/// Offenders that are told as one.
struct Group {
    addresses: u64,
    total: Offender,
}

impl Group {
    const fn of(offender: Offender) -> Self {
        Self {
            addresses: 1,
            total: offender,
        }
    }

    fn add(&mut self, offender: &Offender) {
        let total = &mut self.total;
        self.addresses += 1;
        total.drops += offender.drops;
        total.first_drop_ns = total.first_drop_ns.min(offender.first_drop_ns);
        total.last_drop_ns = total.last_drop_ns.max(offender.last_drop_ns);
    }
}
