//! Buckets that are to be full again, and tokens that are given back.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Which buckets are to be full again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResetQuery {
    /// Whose.
    pub whose: Whose,
    /// Only that of the limit of this name; `None`: those of all limits.
    pub limit: Option<String>,
}

/// Whose buckets are meant: all that packets from there are charged to, also those that they
/// share with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// Those of one address.
    Address(IpAddr),
    /// Those of all addresses of a prefix.
    Prefix(IpNet),
    /// Everybody's.
    All,
}

/// Which tokens are to be given back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefundQuery {
    /// To this address.
    pub address: IpAddr,
    /// By the limit of this name.
    pub limit: String,
    /// How many.
    pub cost: u64,
}

/// What was given back.
#[derive(Debug, Serialize, Deserialize)]
pub struct RefillList {
    /// How many buckets owed something, and were given back all or some of it.
    pub buckets: u64,
    /// Each bucket of the address, also one that was full; empty where none was named.
    pub of_address: Vec<Refill>,
}

/// What was given back to one bucket of an address.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refill {
    /// The limit's name.
    pub limit: String,
    /// Whose budget: the address, range, subscriber or interface that names the bucket.
    pub id: String,
    /// The interface that the bucket is for; `None`: for all.
    pub interface: Option<String>,
    /// The limit's strategy.
    pub strategy: String,
    /// Tokens a full bucket holds; `None`: it is a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Tokens of a window; `None`: it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Whole tokens that were left before.
    pub remaining_before: u64,
    /// Whole tokens that are left now.
    pub remaining: u64,
}
