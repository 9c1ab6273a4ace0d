//! Requests and answers about refilling buckets and giving tokens back.

use std::net::IpAddr;

use ipnet::IpNet;
use limiter_policy::policy::AskedFor;
use serde::{Deserialize, Serialize};

/// Selects the buckets to refill.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResetQuery {
    /// The owners.
    pub whose: BucketSelector,
    /// Only this limit's buckets; `None`: those of all limits.
    pub limit: Option<String>,
    /// For limits that give each destination a bucket, the one of an address's packets; `None`: the host's
    /// own addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<IpAddr>,
    /// The name that packets ask for, for limits that count them by that; `None`: they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_for: Option<AskedFor>,
}

/// The owners of buckets to refill. All buckets that packets from there are charged to are included,
/// also those shared with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BucketSelector {
    /// The buckets of one address.
    Address(IpAddr),
    /// The buckets of all addresses in a prefix.
    Prefix(IpNet),
    /// The buckets that what is asked for has for all sources together.
    Name,
    /// All buckets.
    All,
}

/// The tokens to give back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefundQuery {
    /// The address that gets them; `None`: the bucket that what is asked for has for all sources together.
    pub address: Option<IpAddr>,
    /// The destination, as in [`ResetQuery`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<IpAddr>,
    /// As in [`ResetQuery`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_for: Option<AskedFor>,
    /// The name of the limit that gives them back.
    pub limit: String,
    /// The number of tokens.
    pub cost: u64,
}

/// The result of refilling buckets.
#[derive(Debug, Serialize, Deserialize)]
pub struct RefillList {
    /// How many buckets were in debt and were given back some or all of it.
    pub buckets: u64,
    /// Each bucket of the address or the name, including full ones; empty if neither was named.
    pub of_address: Vec<Refill>,
}

/// The result of refilling one bucket of an address.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refill {
    /// The limit's name.
    pub limit: String,
    /// The bucket's owner: an address, range, subscriber, destination, interface, zone or question.
    pub id: String,
    /// The interface that the bucket is for; `None`: for all.
    pub interface: Option<String>,
    /// The limit's strategy.
    pub strategy: String,
    /// Tokens that a full bucket holds; `None`: it is a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Tokens that a window admits; `None`: it is not a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Whole tokens that were left before.
    pub remaining_before: u64,
    /// Whole tokens that are left now.
    pub remaining: u64,
}
