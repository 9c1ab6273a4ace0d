//! Requests and responses about resetting buckets and giving tokens back.

use std::net::IpAddr;

use ipnet::IpNet;
use limiter_policy::policy::RequestedName;
use serde::{Deserialize, Serialize};

/// Selects the buckets to reset.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResetQuery {
    /// The keys.
    pub whose: BucketSelector,
    /// Only this limit's buckets; `None`: the buckets of all limits.
    pub limit: Option<String>,
    /// For limits with a bucket per destination: the bucket of this destination; `None`: of the host's own
    /// addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<IpAddr>,
    /// The requested name, for limits that count packets by name; `None`: these limits are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_name: Option<RequestedName>,
}

/// The keys of buckets to reset: every bucket that charges packets from there, even if shared with other
/// sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BucketSelector {
    /// The buckets of one address.
    Address(IpAddr),
    /// The buckets of all addresses in a prefix.
    Prefix(IpNet),
    /// The bucket of the requested name that all sources share.
    Name,
    /// All buckets.
    All,
}

/// The tokens to give back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefundQuery {
    /// The address that gets them; `None`: the bucket of the requested name that all sources share.
    pub address: Option<IpAddr>,
    /// The destination, as in [`ResetQuery`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<IpAddr>,
    /// As in [`ResetQuery`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_name: Option<RequestedName>,
    /// The limit's name.
    pub limit: String,
    /// The number of tokens.
    pub cost: u64,
}

/// The result of a reset or a refund.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResetList {
    /// How many buckets in debt got back some or all of it.
    pub buckets: u64,
    /// Each bucket of the address or the name, including full ones; empty if neither was named.
    pub of_address: Vec<BucketReset>,
}

/// A bucket that a reset or a refund has changed.
#[derive(Debug, Serialize, Deserialize)]
pub struct BucketReset {
    /// The limit's name.
    pub limit: String,
    /// The bucket's key: an address, range, subscriber, destination, interface, zone or question.
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
