//! The answers to `limiter reset` and `limiter refund`.

mod prefix;

use std::net::IpAddr;

use limiter_common::limit::LimitId;
use limiter_datapath::kernel::{Datapath, DatapathError, LevelChange};
use limiter_policy::{
    config::nearest::UnknownName,
    policy::{QuestionNames, RequestedName},
};
use thiserror::Error;

use super::named::{NamedBucket, bucket_named, limit_named, names_of};
use crate::protocol::{BucketSelector, Refill, RefillList, RefundQuery, ResetQuery};

/// Why no tokens were given back.
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
    /// The limit counts by name, and the request has none.
    #[error("{limit} counts packets by the name that they ask for: add {option} NAME")]
    Nameless {
        /// The limit's name.
        limit: String,
        /// The option that gives the name.
        option: &'static str,
    },
    /// No limit has a bucket for the name alone.
    #[error(
        "no such limit has a bucket of {0} for all sources together: add an address, if it has one for each"
    )]
    NotOfName(RequestedName),
    /// Neither an address nor a name was given.
    #[error("no bucket is named: give an address, --dns-name or --server-name")]
    Nobody,
    /// No limit applies to the address.
    #[error("no limit applies to {0}: there is nothing to give back")]
    Unlimited(IpAddr),
    /// The prefix has too many buckets to find.
    #[error(transparent)]
    TooWide(#[from] prefix::TooWideError),
    /// The buckets could not be read or written.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

pub(super) fn reset(datapath: &Datapath, query: &ResetQuery) -> Result<RefillList, RefillError> {
    let limit = match &query.limit {
        Some(name) => Some(limit_named(&datapath.manifest().policy, name)?),
        None => None,
    };
    let asked_for = query.asked_for.as_ref();
    let buckets = match query.whose {
        BucketSelector::Address(address) => {
            let found = datapath.refill(address, query.to, asked_for, limit, None)?;
            return refill_list(datapath, &found, (Some(address), asked_for), limit);
        }
        BucketSelector::Name => return of_name(datapath, asked_for, limit, None),
        BucketSelector::Prefix(prefix) => prefix::reset(datapath, prefix.trunc(), limit)?,
        BucketSelector::All => datapath.reset_all(limit)?,
    };
    Ok(RefillList {
        buckets,
        of_address: Vec::new(),
    })
}

/// Gives tokens back to an address or a name.
pub(super) fn refund(datapath: &Datapath, query: &RefundQuery) -> Result<RefillList, RefillError> {
    let limit = limit_named(&datapath.manifest().policy, &query.limit)?;
    let (limit, cost) = (Some(limit), Some(query.cost));
    let asked_for = query.asked_for.as_ref();
    let Some(address) = query.address else {
        return of_name(datapath, asked_for, limit, cost);
    };
    let found = datapath.refill(address, query.to, asked_for, limit, cost)?;
    refill_list(datapath, &found, (Some(address), asked_for), limit)
}

/// Fills the buckets that a name has for all sources together, or gives tokens back in them.
fn of_name(
    datapath: &Datapath,
    asked_for: Option<&RequestedName>,
    limit: Option<LimitId>,
    cost: Option<u64>,
) -> Result<RefillList, RefillError> {
    let found = match asked_for {
        Some(asked_for) => datapath.refill_name(asked_for, limit, cost)?,
        None => Vec::new(),
    };
    refill_list(datapath, &found, (None, asked_for), limit)
}

/// Describes the filled buckets, or why there were none.
fn refill_list(
    datapath: &Datapath,
    refilled: &[LevelChange],
    (address, asked_for): (Option<IpAddr>, Option<&RequestedName>),
    limit: Option<LimitId>,
) -> Result<RefillList, RefillError> {
    if refilled.is_empty() {
        let mut limits = datapath.manifest().policy.limits.iter();
        let limit = limits.find(|known| Some(known.id) == limit);
        let nameless = limit.filter(|_| asked_for.is_none());
        let option = nameless.and_then(|limit| {
            if limit.counts_by_server_name() {
                Some("--server-name")
            } else {
                limit.counts_by_question().then_some("--dns-name")
            }
        });
        return Err(match (address, asked_for, limit, option) {
            (_, _, Some(limit), Some(option)) => RefillError::Nameless {
                limit: limit.name.clone(),
                option,
            },
            (None, Some(asked_for), ..) => RefillError::NotOfName(asked_for.clone()),
            (Some(address), _, Some(limit), None) => RefillError::NotApplying {
                limit: limit.name.clone(),
                address,
            },
            (Some(address), ..) => RefillError::Unlimited(address),
            (None, None, ..) => RefillError::Nobody,
        });
    }
    let asked = asked_for.and_then(|asked_for| names_of(datapath, asked_for));
    let in_debt = refilled.iter().filter(|bucket| bucket.was_in_debt());
    Ok(RefillList {
        buckets: in_debt.count() as u64,
        of_address: refilled
            .iter()
            .filter_map(|bucket| refill_of(datapath, bucket, asked.as_ref()))
            .collect(),
    })
}

fn refill_of(
    datapath: &Datapath,
    bucket: &LevelChange,
    asked: Option<&QuestionNames>,
) -> Option<Refill> {
    let limit_bucket = &bucket.before;
    let NamedBucket {
        limit,
        id,
        interface,
    } = bucket_named(datapath, limit_bucket, asked)?;
    let when_full = limit_bucket.when_full();
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
