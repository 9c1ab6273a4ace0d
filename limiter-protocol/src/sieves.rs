//! Requests and responses about sieves.

use limiter_common::reason::Reason;
use serde::{Deserialize, Serialize};

/// How many of a list's busiest addresses are reported.
pub const BUSIEST: usize = 10;

/// Stands in place of a limit's name in metrics for a sieve for all packets.
pub const EVERYTHING: &str = "*";

/// A sieve, the addresses it knows and its pressure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveStatus {
    /// A summary.
    #[serde(flatten)]
    pub brief: SieveBrief,
    /// Its lists, from the perma-block list, which is list 0, to the entry list; none if it is off.
    pub lists: Vec<SieveListStatus>,
}

/// The summary of a sieve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveBrief {
    /// Its name.
    pub sieve: String,
    /// How many lists it has besides the perma-block list; the number of the entry list.
    pub buckets: u8,
    /// The entry list holds 2 to this power of addresses; 0: the sieve is off.
    pub size: u8,
    /// Pressure begins at this percentage of a limit.
    pub percentage: f64,
    /// How many addresses it knows.
    pub entries: u64,
    /// Its uses.
    pub uses: Vec<SieveUseStatus>,
}

/// The use of a sieve by a limit or for all packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveUseStatus {
    /// The limit that uses it; `None`: it is for all packets.
    pub limit: Option<String>,
    /// Whether that limit only observes, so that packets the sieve would reject are counted and
    /// pass.
    pub observes: bool,
    /// The unit of its pressure: `packets`, `bytes`, `new-connections` or `connections`; `None`: its limit is
    /// off, so there is no pressure.
    pub cost: Option<String>,
    /// How many of these may arrive each second.
    pub limit_per_second: Option<f64>,
    /// How many arrive each second; `None`: not measured.
    pub active_per_second: Option<f64>,
    /// How many connections may be open at once, if these are the unit.
    #[serde(default)]
    pub limit_open: Option<f64>,
    /// How many are open; `None`: not measured.
    #[serde(default)]
    pub active_open: Option<f64>,
    /// The active amount in percent of the limit.
    pub percent: Option<f64>,
    /// Lists below this one are rejected; `None`: there is no pressure, and no packet is scored.
    pub pressure: Option<u8>,
    /// Packets that reached it.
    pub arrived_packets: u64,
    /// Packets dropped because their source was in a rejected list other than the perma-block list.
    pub iprep_packets: u64,
    /// Packets dropped because their source was in the perma-block list.
    pub iprep_perma_packets: u64,
    /// Packets that counted as a hit.
    pub scored_packets: u64,
    /// Packets that should have counted as a hit, but did not because other CPUs held the lists.
    pub contended_packets: u64,
}

impl SieveUseStatus {
    /// Packets by outcome, under their metrics' names.
    #[must_use]
    pub const fn outcomes(&self) -> [(&'static str, u64); 5] {
        [
            ("arrived", self.arrived_packets),
            ("scored", self.scored_packets),
            ("contended", self.contended_packets),
            (Reason::Iprep.name(), self.iprep_packets),
            (Reason::IprepPerma.name(), self.iprep_perma_packets),
        ]
    }
}

/// One list of a sieve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveListStatus {
    /// Its number.
    pub list: u8,
    /// How many addresses it can hold.
    pub capacity: u32,
    /// How many addresses it holds.
    pub entries: u64,
    /// The busiest addresses, at most [`BUSIEST`].
    pub busiest: Vec<SieveEntry>,
}

/// An address that a sieve knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SieveEntry {
    /// The address, or the prefix that is scored as one.
    pub id: String,
    /// Its hits; each aging divides them by eight.
    pub count: u32,
    /// Nanoseconds since it first came, was aged, or entered the perma-block list.
    pub age_ns: u64,
}

/// The effect of a sieve on an address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveExplanation {
    /// The sieve's name.
    pub sieve: String,
    /// The list that holds the address; `None`: none does, and it would enter the entry list.
    pub list: Option<u8>,
    /// Its entry in that list.
    pub entry: Option<SieveEntry>,
    /// The lowest pressure at which the address is rejected; `None`: it never is.
    pub rejected_with: Option<u8>,
    /// The percentage of the limit from which it is rejected.
    pub rejected_from_percent: Option<f64>,
    /// Whether an enforcing use of the sieve rejects it now.
    pub rejected: bool,
    /// Whether all uses that score it only observe, so that it is never rejected.
    pub observed: bool,
}
