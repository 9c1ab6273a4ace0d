//! Decides on packets over plain memory, with the core of the program in the kernel.

mod answers;
mod buckets;
mod handshakes;
mod line;
mod offenders;
mod sieve;
mod source_tables;
mod standing;
mod standing_of;
#[cfg(feature = "testing")]
mod table;
#[cfg(feature = "testing")]
mod testing;

use limiter_common::clock::Clock;

pub use self::{
    answers::answer_frame,
    buckets::{BucketLocation, MemoryBuckets},
    handshakes::complete_handshake,
    line::bucket_in,
    offenders::MemoryOffenders,
    sieve::{ShardLists, SieveMemory, SieveSnapshot},
    source_tables::{
        MemoryBans, MemoryConnections, MemoryCookies, MemoryFlows, MemoryNames, MemoryOwnAddresses,
        MemoryOwnConnections, MemoryQueues, MemorySieves, MemorySourceTables,
    },
    standing::{MemoryStanding, known_in},
    standing_of::{PrefixStanding, standing_of},
};
#[cfg(feature = "testing")]
pub use self::{table::MemoryTable, testing::decide_once};
#[cfg(feature = "testing")]
pub use limiter_common::packet::BytesFrame;

/// A clock that stands at one time, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub u64);

impl Clock for FixedClock {
    fn now(&self) -> u64 {
        self.0
    }
}
