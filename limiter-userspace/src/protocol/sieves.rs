//! What the command line and the daemon say to each other of sieves.

use serde::{Deserialize, Serialize};

/// How many of the busiest addresses of a list are told.
pub const BUSIEST: usize = 10;

/// In place of a limit's name, where metrics name who uses a sieve: it is for all packets.
pub const EVERYTHING: &str = "*";

/// A sieve: whom it knows, and what becomes of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveStatus {
    /// What can be told at a glance.
    #[serde(flatten)]
    pub brief: SieveBrief,
    /// Its lists, from the perma-block list, which is list 0, to the entry list; none if it is off.
    pub lists: Vec<SieveListStatus>,
}

/// A sieve at a glance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveBrief {
    /// Its name.
    pub sieve: String,
    /// How many lists it has besides the perma-block list; the number of the entry list.
    pub buckets: u8,
    /// The entry list holds two to the power of this; 0: the sieve is off.
    pub size: u8,
    /// From this percentage of a limit on there is pressure.
    pub percentage: f64,
    /// How many addresses it knows.
    pub entries: u64,
    /// Who uses it.
    pub uses: Vec<SieveUseStatus>,
}

/// A limit's use of a sieve, or that of all packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveUseStatus {
    /// The limit that uses it; `None`: it is for all packets.
    pub limit: Option<String>,
    /// Whether that limit only observes: whom the sieve would reject it then counts, and lets pass.
    pub observes: bool,
    /// What its pressure is measured in: `packets`, `bytes` or `new-connections`; `None`: by a limit
    /// that is off, so never.
    pub cost: Option<String>,
    /// How many of these there may be each second.
    pub limit_per_second: Option<f64>,
    /// How many there are; `None`: nobody has measured it.
    pub active_per_second: Option<f64>,
    /// The latter in percent of the former.
    pub percent: Option<f64>,
    /// Lists below this one are rejected; `None`: there is no pressure, and nobody is scored.
    pub pressure: Option<u8>,
    /// Packets that came to it.
    pub arrived_packets: u64,
    /// Packets dropped, their source being in too low a list but the perma-block list.
    pub iprep_packets: u64,
    /// Packets dropped, their source being in the perma-block list.
    pub iprep_perma_packets: u64,
    /// Packets that counted as a hit.
    pub scored_packets: u64,
    /// Packets that should have, but other CPUs were at the same lists.
    pub contended_packets: u64,
}

/// One list of a sieve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveListStatus {
    /// Its number.
    pub list: u8,
    /// How many addresses it holds.
    pub capacity: u32,
    /// How many there are.
    pub entries: u64,
    /// The busiest of them, at most [`BUSIEST`].
    pub busiest: Vec<SieveEntry>,
}

/// An address that a sieve knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SieveEntry {
    /// The address, or the prefix that is scored as one.
    pub id: String,
    /// How many hits it has; an eighth of what it had, each time it was aged.
    pub count: u32,
    /// How many nanoseconds ago it came, was aged, or came to the perma-block list.
    pub age_ns: u64,
}

/// What a sieve has for an address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SieveExplanation {
    /// The sieve's name.
    pub sieve: String,
    /// The list that the address is in; `None`: it is in none, and would come into the entry list.
    pub list: Option<u8>,
    /// How the address is known there.
    pub entry: Option<SieveEntry>,
    /// Lists below this pressure are rejected: with which the address begins to be; `None`: with
    /// none.
    pub rejected_with: Option<u8>,
    /// The same in percent of the limit.
    pub rejected_from_percent: Option<f64>,
    /// Whether it is rejected now, by one of the uses of the sieve that do more than observe.
    pub rejected: bool,
    /// Whether all of the uses that score it only observe, so that it never is.
    pub observed: bool,
}
