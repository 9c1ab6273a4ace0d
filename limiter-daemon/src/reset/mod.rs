//! The responses to `limiter reset` and `limiter refund`.

mod prefix;

use std::net::IpAddr;

use limiter_common::limit::LimitId;
use limiter_datapath::kernel::{Datapath, DatapathError, LevelChange};
use limiter_policy::{
    config::nearest::UnknownName,
    policy::{QuestionNames, RequestedName},
};
use limiter_protocol::{BucketReset, BucketSelector, RefundQuery, ResetList, ResetQuery};
use thiserror::Error;

use super::labels::{BucketLabel, bucket_label, limit_by_name, question_names_of};

/// Why no tokens were given back.
#[derive(Debug, Error)]
pub(super) enum ResetError {
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

pub(super) fn reset(datapath: &Datapath, query: &ResetQuery) -> Result<ResetList, ResetError> {
    let limit = match &query.limit {
        Some(name) => Some(limit_by_name(&datapath.manifest().policy, name)?),
        None => None,
    };
    let requested_name = query.requested_name.as_ref();
    let buckets = match query.whose {
        BucketSelector::Address(address) => {
            let found = datapath.give_back(address, query.to, requested_name, limit, None)?;
            return reset_list(datapath, &found, (Some(address), requested_name), limit);
        }
        BucketSelector::Name => return of_name(datapath, requested_name, limit, None),
        BucketSelector::Prefix(prefix) => prefix::reset(datapath, prefix.trunc(), limit)?,
        BucketSelector::All => datapath.reset_all(limit)?,
    };
    Ok(ResetList {
        buckets,
        of_address: Vec::new(),
    })
}

/// Gives tokens back to an address or a name.
pub(super) fn refund(datapath: &Datapath, query: &RefundQuery) -> Result<ResetList, ResetError> {
    let limit = limit_by_name(&datapath.manifest().policy, &query.limit)?;
    let (limit, cost) = (Some(limit), Some(query.cost));
    let requested_name = query.requested_name.as_ref();
    let Some(address) = query.address else {
        return of_name(datapath, requested_name, limit, cost);
    };
    let found = datapath.give_back(address, query.to, requested_name, limit, cost)?;
    reset_list(datapath, &found, (Some(address), requested_name), limit)
}

/// Fills the buckets that a name has for all sources together, or gives tokens back in them.
fn of_name(
    datapath: &Datapath,
    requested_name: Option<&RequestedName>,
    limit: Option<LimitId>,
    cost: Option<u64>,
) -> Result<ResetList, ResetError> {
    let found = match requested_name {
        Some(requested_name) => datapath.give_back_to_name(requested_name, limit, cost)?,
        None => Vec::new(),
    };
    reset_list(datapath, &found, (None, requested_name), limit)
}

/// Describes the filled buckets, or why there were none.
fn reset_list(
    datapath: &Datapath,
    changes: &[LevelChange],
    (address, requested_name): (Option<IpAddr>, Option<&RequestedName>),
    limit: Option<LimitId>,
) -> Result<ResetList, ResetError> {
    if changes.is_empty() {
        let mut limits = datapath.manifest().policy.limits.iter();
        let limit = limits.find(|known| Some(known.id) == limit);
        let nameless = limit.filter(|_| requested_name.is_none());
        let option = nameless.and_then(|limit| {
            if limit.counts_by_server_name() {
                Some("--server-name")
            } else {
                limit.counts_by_question().then_some("--dns-name")
            }
        });
        return Err(match (address, requested_name, limit, option) {
            (_, _, Some(limit), Some(option)) => ResetError::Nameless {
                limit: limit.name.clone(),
                option,
            },
            (None, Some(requested_name), ..) => ResetError::NotOfName(requested_name.clone()),
            (Some(address), _, Some(limit), None) => ResetError::NotApplying {
                limit: limit.name.clone(),
                address,
            },
            (Some(address), ..) => ResetError::Unlimited(address),
            (None, None, ..) => ResetError::Nobody,
        });
    }
    let asked =
        requested_name.and_then(|requested_name| question_names_of(datapath, requested_name));
    let in_debt = changes.iter().filter(|bucket| bucket.was_in_debt());
    Ok(ResetList {
        buckets: in_debt.count() as u64,
        of_address: changes
            .iter()
            .filter_map(|bucket| bucket_reset(datapath, bucket, asked.as_ref()))
            .collect(),
    })
}

fn bucket_reset(
    datapath: &Datapath,
    bucket: &LevelChange,
    asked: Option<&QuestionNames>,
) -> Option<BucketReset> {
    let limit_bucket = &bucket.before;
    let BucketLabel {
        limit,
        id,
        interface,
    } = bucket_label(datapath, limit_bucket, asked)?;
    let when_full = limit_bucket.when_full();
    let has_burst = limit.strategy.has_burst();
    Some(BucketReset {
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
