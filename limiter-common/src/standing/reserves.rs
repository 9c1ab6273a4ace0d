//! The reserves of a limit: trunk reservation on one bucket.

use super::Standing;

/// The amount that a packet must leave in a bucket, by the standing of its source, in the ticks of the bucket's states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Reserves {
    ticks: [u64; Standing::COUNT],
}

impl Reserves {
    /// Without a reserve.
    pub const NONE: Self = Self {
        ticks: [0; Standing::COUNT],
    };

    /// Makes reserves from ticks in the order of [`Standing::ALL`].
    #[must_use]
    pub const fn new(ticks: [u64; Standing::COUNT]) -> Self {
        Self { ticks }
    }

    /// The ticks that a packet from a source of this standing must leave in the bucket.
    #[must_use]
    #[inline(always)]
    pub const fn from(&self, standing: Standing) -> u64 {
        self.ticks[standing as usize]
    }

    /// The same by the standing's number: with an enum, the verifier would walk all later code once per standing.
    /// A number without a standing, because the look-up was skipped, counts as unknown.
    #[must_use]
    #[inline(always)]
    pub const fn from_number(&self, standing: u32) -> u64 {
        if standing <= Standing::Unknown as u32 {
            self.ticks[standing as usize]
        } else {
            self.ticks[Standing::Unknown as usize]
        }
    }
}
