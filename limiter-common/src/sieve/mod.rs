//! Sieves find busy sources, by Apache Traffic Server's SieveLRU.
//!
//! A sieve is a sequence of LRU lists. New addresses enter the entry list, the largest; each lower list is
//! half as large and holds busier addresses; list 0 is for long blocks. Under pressure every arrival
//! counts, and sources in too low a list are dropped ([`crate::decide::sift`]).
//!
//! The address's keyed hash divides a sieve into shards, so that CPUs seldom contend: each shard has its
//! share of every list, and is a separate sieve for its addresses. With one shard this is the original.
//!
//! Sieves run in the kernel, because userspace would have to hear of each arrival just when there are most;
//! and they are exact, because a sketch has no lists to configure and show. A hit costs 50 ns more than
//! counting the arrival, which costs 20. Userspace never takes a lock: a killed daemon would not release
//! it.
//!
//! The kernel requires memory as arrays of fixed size, zeroed at first, and a limited number of attempts at a
//! shard's lock, since a program may not wait.

mod entry;
mod geometry;
mod hit;
#[cfg(not(target_arch = "bpf"))]
mod listed;
mod lists;
mod pressure;
mod word;

#[cfg(not(target_arch = "bpf"))]
pub use self::listed::{ListedSource, find_listed, put_back};
pub use self::{
    entry::{Entry, Shard},
    geometry::{ChainLocation, Geometry, Region},
    hit::{CONTENDED, LIST, score},
    lists::{Memory, SieveLists},
    pressure::{PRESSURES, Pressure, SieveTraffic, pressure_of_limit, pressure_of_sieve},
    word::Word,
};
use crate::address::{Address, Family};

/// The maximum number of sieves in a policy.
pub const MAX_SIEVES: u32 = 64;

/// The maximum number of uses of sieves in a policy: one by each limit, and one of each sieve on
/// the whole interface.
pub const MAX_USES: u32 = crate::limit::MAX_LIMITS + MAX_SIEVES;

/// A sieve as the datapath reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sieve {
    /// The age in nanoseconds after which an entry begins again in the entry list; 0: never.
    pub max_age_ns: u64,
    /// The same age for entries in list 0.
    pub perma_max_age_ns: u64,
    /// The leading 64 bits of the mask that distinguishes IPv6 sources.
    pub ipv6_mask_high: u64,
    /// Its trailing 64 bits.
    pub ipv6_mask_low: u64,
    /// An entry goes to list 0 with more hits than this ...
    pub perma_limit: u32,
    /// ... if it is in this list or a lower one.
    pub perma_threshold: u32,
    /// The sieve's size.
    pub geometry: Geometry,
    /// The sieve's memory.
    pub region: Region,
}

impl Sieve {
    /// Returns the part of a source's address that identifies it in the sieve.
    #[must_use]
    #[inline(always)]
    pub const fn key(&self, source: &Address) -> Address {
        let Address { family, high, low } = *source;
        match family {
            Family::V4 => Address { family, high, low },
            Family::V6 => Address {
                family,
                high: high & self.ipv6_mask_high,
                low: low & self.ipv6_mask_low,
            },
        }
    }

    /// Returns the maximum age of a list's entries, in nanoseconds; 0: unlimited.
    #[inline(always)]
    const fn max_age_ns(&self, list: u32) -> u64 {
        if list == PERMA_BLOCK {
            self.perma_max_age_ns
        } else {
            self.max_age_ns
        }
    }
}

/// The list of sources blocked for long.
pub const PERMA_BLOCK: u32 = 0;

/// The use of a sieve: a limit, or the whole interface, scores its packets with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SieveUse {
    /// The index of the limit, as a bit; 0: all packets are scored.
    pub limit: u64,
    /// The sieve's index in the policy; [`Self::NO_SIEVE`]: only arrivals are counted, and no source is
    /// scored. Uses of one sieve are adjacent.
    pub sieve: u32,
    /// The index of the use's pressure and counters: [`pressure_of_limit`] or
    /// [`pressure_of_sieve`].
    pub pressure: u32,
}

impl SieveUse {
    /// Stands in for a sieve: none.
    pub const NO_SIEVE: u32 = u32::MAX;
}
