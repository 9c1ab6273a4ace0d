//! The traffic of sources by standing, and the standing of one address.

use std::collections::BTreeMap;

use ipnet::IpNet;
use limiter_common::{counters::LimitTraffic, standing::Standing};
use serde::{Deserialize, Serialize};

/// The traffic of sources of each standing at limits with a reserve.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StandingStatus {
    /// The present shortage; `None`: there is none.
    pub shortage: Option<ShortageStatus>,
    /// Why handshakes prove no source, though the policy says so; `None`: they work as configured.
    pub handshakes_error: Option<String>,
    /// By limit with a reserve, the traffic of each standing, from the highest to the lowest; last, the packets
    /// that passed without a look-up of the standing.
    pub limits: BTreeMap<String, Vec<StandingTraffic>>,
    /// Queries that reserves would have refused, by the result of their DNS cookies; empty: cookies are not
    /// checked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dns_cookies: BTreeMap<String, u64>,
}

/// A shortage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShortageStatus {
    /// Nanoseconds since it began.
    pub began_ago_ns: u64,
    /// Nanoseconds since a limit last refused a packet for its reserve.
    pub last_refused_ago_ns: u64,
}

/// The traffic of sources of one standing at a limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StandingTraffic {
    /// The standing; `None`: it was not looked up, since the packet passed with any.
    pub standing: Option<Standing>,
    /// Packets charged and passed.
    pub passed_packets: u64,
    /// Bytes of passed packets.
    pub passed_bytes: u64,
    /// Packets dropped by this limit.
    pub dropped_packets: u64,
    /// Bytes of dropped packets.
    pub dropped_bytes: u64,
    /// Packets that it would have dropped if it enforced.
    pub would_drop_packets: u64,
    /// Bytes of packets that it would have dropped.
    pub would_drop_bytes: u64,
}

impl StandingTraffic {
    /// Makes it from counters.
    #[must_use]
    pub const fn new(standing: Option<Standing>, traffic: &LimitTraffic) -> Self {
        Self {
            standing,
            passed_packets: traffic.passed.packets,
            passed_bytes: traffic.passed.bytes,
            dropped_packets: traffic.dropped.packets,
            dropped_bytes: traffic.dropped.bytes,
            would_drop_packets: traffic.would_drop.packets,
            would_drop_bytes: traffic.would_drop.bytes,
        }
    }
}

/// Returns the standings with counters of their own, from the highest to the lowest. `None`, the last, is for
/// packets that needed no look-up of the standing.
pub fn counted_standings() -> impl Iterator<Item = Option<Standing>> {
    Standing::ALL.into_iter().map(Some).chain([None])
}

/// Returns the name of a counted standing, in tables and metrics.
#[must_use]
pub fn counted_name(standing: Option<Standing>) -> &'static str {
    standing.map_or("unasked", Standing::name)
}

/// The standing of an address, and why it has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StandingExplanation {
    /// The source of the address: itself, or an IPv6 prefix.
    pub source: IpNet,
    /// Its standing.
    pub standing: Standing,
    /// The reason for the standing.
    pub why: StandingReason,
    /// Whether the standing counts only as fresh: the source gained it during a shortage, or less than a minute
    /// before one.
    pub fresh: bool,
    /// The separate occasions on which it came, as far as they are counted.
    pub visits: u32,
    /// Nanoseconds since it gained its standing; `None`: it has none, or the time is not recorded.
    pub gained_ago_ns: Option<u64>,
    /// Nanoseconds until its standing ends; `None`: it stays as long as the source keeps coming.
    pub ends_in_ns: Option<u64>,
    /// Nanoseconds since its last visit; `None`: the time is not recorded.
    pub last_visit_ago_ns: Option<u64>,
    /// The present shortage; `None`: there is none.
    pub shortage: Option<ShortageStatus>,
}

/// Why a source has its standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StandingReason {
    /// It is on a list of proven sources.
    List,
    /// An operator or a stream trusts it.
    Trusted,
    /// It completed a TCP handshake, or sent a query with a valid DNS cookie.
    Handshake,
    /// Another node of the fleet has proven it.
    Fleet,
    /// It came on separate occasions; if it is unknown, on too few.
    Visits,
    /// It came again after it was refused.
    Retry,
    /// It is not known.
    Nothing,
}

/// The tokens that a limit reserves from an address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveExplanation {
    /// The tokens that a packet must leave in the bucket.
    pub tokens: u64,
    /// Whether a packet of one token would pass now.
    pub passes: bool,
    /// Nanoseconds until it would.
    pub retry_in_ns: u64,
}
