//! What is counted, as the kernel stores it: one set per CPU, summed by the reader.

use crate::{limit::MAX_LIMIT_IDS, reason::REASON_COUNT};

/// How many interfaces one daemon serves at most: each has its own block of reason counters.
pub const MAX_INTERFACES: u32 = 64;

/// How many reason counters there are: a block of [`REASON_COUNT`] for each interface.
pub const REASON_COUNTERS: u32 = MAX_INTERFACES * REASON_COUNT;

/// How many limit counters there are: one for each interned id.
pub const LIMIT_COUNTERS: u32 = MAX_LIMIT_IDS;

/// How many counters of the bucket store there are.
pub const STORE_COUNTERS: u32 = 1;

/// Which of them counts buckets that were forgotten while they were in debt.
pub const LOSSY_EVICTIONS: u32 = 0;

/// Packets and their bytes, from the Ethernet header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes of those packets.
    pub bytes: u64,
}

impl Traffic {
    /// Counts one frame of `length` bytes.
    #[inline(always)]
    pub fn add(&mut self, length: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(length);
    }
}

impl core::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

/// What one limit did to the packets it matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LimitTraffic {
    /// Charged to the limit and passed.
    pub passed: Traffic,
    /// Dropped, this limit being the strictest that denied.
    pub dropped: Traffic,
    /// Passed, the limit having too few tokens but only observing.
    pub would_drop: Traffic,
}

impl core::ops::AddAssign for LimitTraffic {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.dropped += other.dropped;
        self.would_drop += other.would_drop;
    }
}
