//! Fills the buckets to which packets from a prefix are charged.
//!
//! The hash store has the key of each bucket. The table store has only a hash of it, so every key in
//! the prefix is looked up, up to a maximum.

use std::{
    collections::{BTreeSet, HashSet},
    net::IpAddr,
};

use ipnet::IpNet;
use limiter_common::{
    address::Address,
    key::{BucketKey, Key},
    limit::{KeyPart, LimitId},
};
use limiter_datapath::kernel::Datapath;
use limiter_policy::{
    config::Store,
    policy::{Limit, Policy},
};
use thiserror::Error;

use super::ResetError;

/// The most keys of one limit to look up.
const MOST_KEYS: u32 = 1 << MOST_BITS;
const MOST_BITS: u8 = 16;

/// The prefix has too many keys to look up.
#[derive(Debug, Error)]
#[error(
    "{prefix} has more than {MOST_KEYS} ids of {limit}, too many to look up in the table store: \
     name a longer prefix, or another limit with --limit, or reset all with --all"
)]
pub(crate) struct TooWideError {
    prefix: IpNet,
    limit: String,
}

/// Fills the buckets to which packets from `prefix` are charged, of one limit or of all; returns how many were in
/// debt.
pub(super) fn reset(
    datapath: &Datapath,
    prefix: IpNet,
    limit: Option<LimitId>,
) -> Result<u64, ResetError> {
    let policy = &datapath.manifest().policy;
    let is_meant = |id| limit.is_none_or(|limit| limit == id);
    let borders = borders(policy, prefix);
    match datapath.settings().buckets.store {
        Store::Hash => {
            let subscribers: HashSet<_> = borders
                .iter()
                .filter_map(|address| datapath.subscriber_of(*address))
                .collect();
            Ok(datapath.reset_keys(|key| {
                is_meant(LimitId(key.limit)) && is_charged(key, prefix, &subscribers)
            })?)
        }
        Store::Table => {
            let limits = policy.limits.iter().filter(|limit| is_meant(limit.id));
            // Collected before the first change, so that an error leaves all buckets as they are.
            let sources = limits
                .map(|limit| Ok((limit.id, sources(limit, prefix, &borders)?)))
                .collect::<Result<Vec<_>, TooWideError>>()?;
            let mut count = 0;
            for (limit, sources) in sources {
                count += datapath.reset_each(sources, limit)?;
            }
            Ok(count)
        }
    }
}

/// Whether packets from a prefix are charged to that bucket. All are charged to an interface's, and any may be to a
/// destination's.
fn is_charged(key: &BucketKey, prefix: IpNet, subscribers: &HashSet<u64>) -> bool {
    match key.decode() {
        Key::Source {
            address,
            prefix_length,
        } => {
            IpNet::new(address.into(), prefix_length).is_ok_and(|range| do_overlap(&range, &prefix))
        }
        Key::Number(KeyPart::Subscriber, number) => subscribers.contains(&number),
        Key::Number(..) | Key::Destination(_) => true,
    }
}

fn do_overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// Returns addresses of a prefix, with at least one of each key of a limit.
fn sources(
    limit: &Limit,
    prefix: IpNet,
    borders: &BTreeSet<IpAddr>,
) -> Result<Vec<IpAddr>, TooWideError> {
    let family = Address::from(prefix.addr()).family;
    let Some(length) = limit.prefix_length(family) else {
        return Ok(match limit.id_format.key_part() {
            Some(KeyPart::Subscriber) => borders.iter().copied().collect(),
            // Any address will do if the limit is for the family; the destinations are the host's own addresses,
            // which are known.
            _ => vec![prefix.addr()],
        });
    };
    let bits = length.saturating_sub(prefix.prefix_len());
    if bits > MOST_BITS {
        return Err(TooWideError {
            prefix,
            limit: limit.name.clone(),
        });
    }
    Ok(match prefix.subnets(length) {
        Ok(ranges) => ranges.map(|range| range.addr()).collect(),
        // The whole prefix has one key.
        Err(_) => vec![prefix.addr()],
    })
}

/// Returns the addresses of a prefix where the subscriber may change: its first address, the first of each
/// subscriber's prefix, and the address after that prefix.
fn borders(policy: &Policy, prefix: IpNet) -> BTreeSet<IpAddr> {
    let mut borders = BTreeSet::from([prefix.addr()]);
    let prefixes = policy.subscribers.values().flatten();
    for within in prefixes.filter(|other| prefix.contains(*other)) {
        borders.insert(within.network());
        borders.extend(successor(within.broadcast()).filter(|next| prefix.contains(next)));
    }
    borders
}

fn successor(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V4(address) => {
            let next = address.to_bits().checked_add(1)?;
            Some(IpAddr::V4(next.into()))
        }
        IpAddr::V6(address) => {
            let next = address.to_bits().checked_add(1)?;
            Some(IpAddr::V6(next.into()))
        }
    }
}
