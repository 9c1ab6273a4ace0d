//! Lists the keys with the most open connections by limit, and the number that each may have.

use std::{cmp::Reverse, collections::BTreeMap};

use limiter_common::connection::CountId;
use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_policy::{config::nearest::UnknownName, policy::Limit};
use limiter_protocol::{KeyList, KeyQuery, KeyStatus, OpenByLimit};
use thiserror::Error;

use super::{
    connections::{BusyKey, BusyKeys, KeySnapshot, open_by_limit, status},
    labels::{bucket_label, limit_by_name},
};

#[derive(Debug, Error)]
pub(super) enum BusyKeysError {
    /// No such limit.
    #[error(transparent)]
    UnknownLimit(#[from] UnknownName),
    /// The limit counts something else.
    #[error("the limit '{0}' does not count open connections: name one with `cost: connections`")]
    NotOnConnections(String),
    /// The keys could not be read.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Returns the keys with the most open connections, as of the last poll in `keys`; `None` without a daemon.
pub(super) fn list(
    datapath: &Datapath,
    keys: Option<&BusyKeys>,
    query: &KeyQuery,
) -> Result<KeyList, BusyKeysError> {
    let manifest = datapath.manifest();
    let only = match &query.limit {
        Some(name) => Some(limit_by_name(&manifest.policy, name)?),
        None => None,
    };
    let found = keys.and_then(|keys| keys.of(manifest.generation));
    // The poll's numbers add up to its total. Without a poll, the kernel's maps have the total.
    let counted = match &found {
        Some(found) => found.counted,
        None => status(datapath)?.map_or(0, |status| status.counted),
    };
    let mut open = match &found {
        Some(_) => BTreeMap::new(),
        None => open_by_limit(datapath),
    };
    let limits = manifest.policy.limits.iter();
    let counting = limits.filter(|limit| limit.counts_connections());
    let (mut limits, mut listed) = (BTreeMap::new(), Vec::new());
    for (index, limit) in counting.enumerate() {
        if only.is_some_and(|only| only != limit.id) {
            continue;
        }
        let first = datapath.first_of_group(index);
        let of_limit = found.as_ref().map(|found| &found.limits[first]);
        let by_limit = OpenByLimit {
            open: match of_limit {
                Some(of_limit) => of_limit.open,
                None => open.remove(&limit.name).unwrap_or_default(),
            },
            keys: of_limit.map(|of_limit| of_limit.keys),
        };
        limits.insert(limit.name.clone(), by_limit);
        for key in of_limit.iter().flat_map(|of_limit| &of_limit.most) {
            listed.extend(key_status(datapath, limit, key)?);
        }
    }
    if let (Some(name), true) = (&query.limit, limits.is_empty()) {
        return Err(BusyKeysError::NotOnConnections(name.clone()));
    }
    listed.sort_by(|one, other| {
        let by_use = other.compare_use(one);
        by_use.then_with(|| rest(one).cmp(&rest(other)))
    });
    listed.truncate(query.count as usize);
    Ok(KeyList {
        counted,
        polled_ago_ns: found.as_ref().map(ago),
        limits,
        keys: listed,
    })
}

/// Names a key; `None`: it was found by another policy.
fn key_status(
    datapath: &Datapath,
    limit: &Limit,
    key: &BusyKey,
) -> Result<Option<KeyStatus>, DatapathError> {
    let Some(found) = datapath.bucket_at(limit.id, CountId(key.count_id), key.ends)? else {
        return Ok(None);
    };
    let Some(label) = bucket_label(datapath, &found, None) else {
        return Ok(None);
    };
    Ok(Some(KeyStatus {
        limit: limit.name.clone(),
        id: label.id,
        open: key.open,
        most: found.parameters.connections(),
        waiting: datapath.waiting(&found.key)?,
    }))
}

fn ago(found: &KeySnapshot) -> u64 {
    u64::try_from(found.at.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The fields that make the order reproducible.
fn rest(key: &KeyStatus) -> impl Ord + '_ {
    (Reverse(key.open), &key.limit, &key.id)
}
