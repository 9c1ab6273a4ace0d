//! The answers to `limiter reset` and `limiter refund`.

mod prefix;

use std::net::IpAddr;

use limiter_common::limit::LimitId;
use limiter_datapath::kernel::{Datapath, DatapathError, Refilled};
use limiter_policy::config::nearest::UnknownName;
use thiserror::Error;

use super::named::{NamedBucket, bucket_named, limit_named};
use crate::protocol::{BucketSelector, Refill, RefillList, RefundQuery, ResetQuery};

/// Nothing was given back.
#[derive(Debug, Error)]
pub(super) enum RefillError {
    /// No such limit.
    #[error(transparent)]
    UnknownLimit(#[from] UnknownName),
    /// The limit does not apply to the address.
    #[error(
        "{limit} does not apply to {address}: `limiter explain {address}` shows the limits that do"
    )]
    NotApplying {
        /// The limit's name.
        limit: String,
        /// The address.
        address: IpAddr,
    },
    /// No limit applies to the address.
    #[error("no limit applies to {0}: there is nothing to give back")]
    Unlimited(IpAddr),
    /// The prefix has too many buckets to find.
    #[error(transparent)]
    TooWide(#[from] prefix::TooWide),
    /// The buckets could not be read or written.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Fills buckets.
pub(super) fn reset(datapath: &Datapath, query: &ResetQuery) -> Result<RefillList, RefillError> {
    let limit = match &query.limit {
        Some(name) => Some(limit_named(&datapath.manifest().policy, name)?),
        None => None,
    };
    let buckets = match query.whose {
        BucketSelector::Address(address) => {
            return of_address(datapath, address, query.to, limit, None);
        }
        BucketSelector::Prefix(prefix) => prefix::reset(datapath, prefix.trunc(), limit)?,
        BucketSelector::All => datapath.reset_all(limit)?,
    };
    Ok(RefillList {
        buckets,
        of_address: Vec::new(),
    })
}

/// Gives tokens back to an address.
pub(super) fn refund(datapath: &Datapath, query: &RefundQuery) -> Result<RefillList, RefillError> {
    let limit = limit_named(&datapath.manifest().policy, &query.limit)?;
    let cost = Some(query.cost);
    of_address(datapath, query.address, query.to, Some(limit), cost)
}

fn of_address(
    datapath: &Datapath,
    address: IpAddr,
    to: Option<IpAddr>,
    limit: Option<LimitId>,
    cost: Option<u64>,
) -> Result<RefillList, RefillError> {
    let refilled = datapath.refill(address, to, limit, cost)?;
    if refilled.is_empty() {
        let mut limits = datapath.manifest().policy.limits.iter();
        return Err(match limits.find(|known| Some(known.id) == limit) {
            Some(limit) => RefillError::NotApplying {
                limit: limit.name.clone(),
                address,
            },
            None => RefillError::Unlimited(address),
        });
    }
    let in_debt = refilled.iter().filter(|bucket| bucket.was_in_debt());
    Ok(RefillList {
        buckets: in_debt.count() as u64,
        of_address: refilled
            .iter()
            .filter_map(|bucket| tell(datapath, bucket))
            .collect(),
    })
}

fn tell(datapath: &Datapath, bucket: &Refilled) -> Option<Refill> {
    let limit_bucket = &bucket.before;
    let NamedBucket {
        limit,
        id,
        interface,
    } = bucket_named(datapath, limit_bucket, None)?;
    let when_full = limit_bucket.parameters.when_full();
    let has_burst = limit.strategy.has_burst();
    Some(Refill {
        limit: limit.name.clone(),
        id,
        interface,
        strategy: limit.strategy.name().to_owned(),
        burst: has_burst.then_some(when_full),
        count: (!has_burst).then_some(when_full),
        remaining_before: limit_bucket.level.remaining,
        remaining: bucket.after.remaining,
    })
}
