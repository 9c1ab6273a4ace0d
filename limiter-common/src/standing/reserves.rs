//! What a limit reserves: trunk reservation on one bucket.

use super::Standing;

/// How much of a bucket must be left for a packet to pass, by the standing of its source, in the
/// ticks of the bucket's states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Reserves {
    ticks: [u64; Standing::COUNT],
}

impl Reserves {
    /// Nothing is reserved.
    pub const NONE: Self = Self {
        ticks: [0; Standing::COUNT],
    };

    /// Makes reserves from ticks in the order of [`Standing::ALL`].
    #[must_use]
    pub const fn new(ticks: [u64; Standing::COUNT]) -> Self {
        Self { ticks }
    }

    /// Returns the ticks that a packet of a source of that standing must leave in the bucket.
    #[must_use]
    #[inline(always)]
    pub const fn from(&self, standing: Standing) -> u64 {
        self.ticks[standing as usize]
    }

    /// Does the same by the number of a standing: the verifier would walk what follows once for each
    /// standing. Sources whose standing nobody asked for count as unknown.
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
