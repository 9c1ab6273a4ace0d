//! Lists the owners with the most open connections by limit, and the number that each may have.

use std::{cmp::Reverse, collections::BTreeMap};

use limiter_common::connection::Place;
use limiter_datapath::kernel::{Datapath, DatapathError};
use limiter_policy::{config::nearest::UnknownName, policy::Limit};
use thiserror::Error;

use super::{
    connections::{Owner, OwnerSnapshot, Owners, open_by_limit, status},
    named::{bucket_named, limit_named},
};
use crate::protocol::{OpenByLimit, OwnerList, OwnerQuery, OwnerStatus};

#[derive(Debug, Error)]
pub(super) enum OwnersError {
    /// No such limit.
    #[error(transparent)]
    UnknownLimit(#[from] UnknownName),
    /// The limit counts something else.
    #[error("the limit '{0}' does not count open connections: name one with `cost: connections`")]
    NotOnConnections(String),
    /// The owners could not be read.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Returns the owners with the most open connections, as of the last look in `owners`; `None` without a daemon.
pub(super) fn list(
    datapath: &Datapath,
    owners: Option<&Owners>,
    query: &OwnerQuery,
) -> Result<OwnerList, OwnersError> {
    let manifest = datapath.manifest();
    let only = match &query.limit {
        Some(name) => Some(limit_named(&manifest.policy, name)?),
        None => None,
    };
    let found = owners.and_then(|owners| owners.of(manifest.generation));
    // The look's numbers add up to its total. Without a look, the kernel's maps have the total.
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
            owners: of_limit.map(|of_limit| of_limit.owners),
        };
        limits.insert(limit.name.clone(), by_limit);
        for owner in of_limit.iter().flat_map(|of_limit| &of_limit.most) {
            listed.extend(owner_status(datapath, limit, owner)?);
        }
    }
    if let (Some(name), true) = (&query.limit, limits.is_empty()) {
        return Err(OwnersError::NotOnConnections(name.clone()));
    }
    listed.sort_by(|one, other| {
        let by_share = other.share_against(one);
        by_share.then_with(|| rest(one).cmp(&rest(other)))
    });
    listed.truncate(query.count as usize);
    Ok(OwnerList {
        counted,
        looked_ago_ns: found.as_ref().map(ago),
        limits,
        owners: listed,
    })
}

/// Names an owner; `None`: it was found by another policy.
fn owner_status(
    datapath: &Datapath,
    limit: &Limit,
    owner: &Owner,
) -> Result<Option<OwnerStatus>, DatapathError> {
    let Some(found) = datapath.bucket_at(limit.id, Place(owner.place), owner.ends)? else {
        return Ok(None);
    };
    let Some(named) = bucket_named(datapath, &found, None) else {
        return Ok(None);
    };
    Ok(Some(OwnerStatus {
        limit: limit.name.clone(),
        id: named.id,
        open: owner.open,
        most: found.parameters.connections(),
        waiting: datapath.waiting(&found.key)?,
    }))
}

fn ago(found: &OwnerSnapshot) -> u64 {
    u64::try_from(found.at.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The fields that make the order reproducible.
fn rest(owner: &OwnerStatus) -> impl Ord + '_ {
    (Reverse(owner.open), &owner.limit, &owner.id)
}
