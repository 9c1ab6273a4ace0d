//! What sources of each standing got, and what is known of one of them.

use std::collections::BTreeMap;

use ipnet::IpNet;
use limiter_common::{counters::LimitTraffic, standing::Standing};
use serde::{Deserialize, Serialize};

/// What sources of each standing got of the limits that reserve.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StandingStatus {
    /// The present shortage; `None`: there is none.
    pub shortage: Option<ShortageStatus>,
    /// Why handshakes prove no source, though they should; `None`: they do as configured.
    pub handshakes_error: Option<String>,
    /// What each standing got of each limit that reserves, from the highest standing to the lowest,
    /// and last what passed whatever the standing was.
    pub limits: BTreeMap<String, Vec<StandingTraffic>>,
    /// How many queries, which reserves would have refused, said what by their DNS cookies; empty:
    /// none are looked for.
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

/// What sources of a standing got of a limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StandingTraffic {
    /// The standing; `None`: nobody asked for it, because the packet passed whatever it was.
    pub standing: Option<Standing>,
    /// Packets charged and passed.
    pub passed_packets: u64,
    /// Bytes of those.
    pub passed_bytes: u64,
    /// Packets dropped by this limit.
    pub dropped_packets: u64,
    /// Bytes of those.
    pub dropped_bytes: u64,
    /// Packets that it would have dropped if it enforced.
    pub would_drop_packets: u64,
    /// Bytes of those.
    pub would_drop_bytes: u64,
}

impl StandingTraffic {
    /// Makes it of counters.
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

/// Returns the standings that are counted apart, from the highest to the lowest. The last, `None`,
/// is of packets whose sources' standing nobody asked for.
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
    /// The source that the address belongs to: itself, or an IPv6 prefix.
    pub source: IpNet,
    /// Its standing.
    pub standing: Standing,
    /// Why it has it.
    pub why: Why,
    /// Whether what it gained counts only as fresh: it was gained during a shortage, or less than a
    /// minute before it.
    pub fresh: bool,
    /// The separate occasions on which it came, as far as they are counted.
    pub visits: u32,
    /// Nanoseconds since it gained its standing; `None`: it has none, or it is not noted.
    pub gained_ago_ns: Option<u64>,
    /// Nanoseconds until its standing ends; `None`: it stays as long as the source comes.
    pub ends_in_ns: Option<u64>,
    /// Nanoseconds since its last visit; `None`: it is not noted.
    pub last_visit_ago_ns: Option<u64>,
    /// The present shortage; `None`: there is none.
    pub shortage: Option<ShortageStatus>,
}

/// Why a source has its standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It is on a list of proven sources.
    List,
    /// Somebody vouches for it.
    Vouched,
    /// It completed a TCP handshake, or sent a query with a valid DNS cookie.
    Handshake,
    /// Another node of the fleet has proven it.
    Fleet,
    /// It came on separate occasions; if it is unknown, on too few.
    Visits,
    /// It came again after it was refused.
    Retry,
    /// Nothing is known of it.
    Nothing,
}

/// What a limit reserves from an address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReserveExplanation {
    /// The tokens that a packet must leave in the bucket.
    pub tokens: u64,
    /// Whether a packet of one token would pass now.
    pub passes: bool,
    /// Nanoseconds until it would.
    pub retry_in_ns: u64,
}
