//! Sieves: who is busy, by Apache Traffic Server's SieveLRU.
//!
//! A sieve is a chain of LRU lists. Who is new comes into the entry list, the largest; each list
//! below is half as large and holds who is busier; list 0 is for those who are blocked for long.
//! Under pressure every arrival counts, and who is in too low a list is dropped ([`sift`]).
//!
//! The address's keyed hash divides a sieve into shards, so that CPUs seldom meet: each has its
//! share of every list, and is a sieve of its own for the addresses that are its. With one shard
//! this is the original.
//!
//! What the kernel forces: memory is arrays of fixed size, all zeroes at first; whoever works on a
//! shard holds its lock, which is only tried for, since a program may not wait.

mod entry;
mod geometry;
mod hit;
#[cfg(not(target_arch = "bpf"))]
mod listed;
mod lists;
mod pressure;
mod sift;
mod word;

#[cfg(not(target_arch = "bpf"))]
pub use self::listed::{Listed, listed, put_back};
pub use self::{
    entry::{Entry, Shard},
    geometry::{Geometry, Place, Region},
    hit::{CONTENDED, LIST, score},
    lists::{Lists, Memory},
    pressure::{PRESSURES, Pressure, SieveTraffic, pressure_of_limit, pressure_of_sieve},
    sift::{NOT_SCORED, Sieves, sift, sift_by},
    word::Word,
};
use crate::address::{Address, Family};

/// How many sieves a policy may have.
pub const MAX_SIEVES: u32 = 64;

/// How many uses of sieves a policy may have: one by each limit, and one of each sieve on the whole
/// interface.
pub const MAX_USES: u32 = crate::limit::MAX_LIMITS + MAX_SIEVES;

/// A sieve as the datapath reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sieve {
    /// After how many nanoseconds an entry has to begin again in the entry list; 0: never.
    pub max_age_ns: u64,
    /// The same of those in list 0.
    pub perma_max_age_ns: u64,
    /// The bits of an IPv6 address that tell one source from another: the leading 64.
    pub ipv6_mask_high: u64,
    /// The trailing 64.
    pub ipv6_mask_low: u64,
    /// An entry goes to list 0 with more hits than that ...
    pub perma_limit: u32,
    /// ... if it is in this list or one below.
    pub perma_threshold: u32,
    /// How large it is.
    pub geometry: Geometry,
    /// Where its memory is.
    pub region: Region,
}

impl Sieve {
    /// The part of a source's address by which it is known here.
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

    /// How old an entry of a list may become, in nanoseconds; 0: however old.
    #[inline(always)]
    const fn max_age_ns(&self, list: u32) -> u64 {
        if list == PERMA_BLOCK {
            self.perma_max_age_ns
        } else {
            self.max_age_ns
        }
    }
}

/// The list of those who are blocked for long.
pub const PERMA_BLOCK: u32 = 0;

/// That a limit, or the whole interface, has a sieve score its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SieveUse {
    /// The slot of the limit, as a bit; 0: all packets are scored.
    pub limit: u64,
    /// The sieve, by its place among those of the policy; [`Self::NO_SIEVE`]: nobody is scored, and
    /// only what arrives is counted. Uses of one sieve stand together.
    pub sieve: u32,
    /// The index of its pressure and of what is counted: [`pressure_of_limit`] or
    /// [`pressure_of_sieve`].
    pub pressure: u32,
}

impl SieveUse {
    /// In place of a sieve: none.
    pub const NO_SIEVE: u32 = u32::MAX;
}
