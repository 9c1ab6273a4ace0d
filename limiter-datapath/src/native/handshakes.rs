//! Handshakes that are completed, as somebody says.

use limiter_common::{
    bucket::{BucketStore, Search},
    connection::{Ends, each_limit, toll},
    policy::Tables,
};

/// Charges a handshake, completed at the time `now_ns`, to each limit that counts it, as the network stack
/// has it charged in the kernel.
pub fn complete_handshake<T: Tables, B: BucketStore>(
    tables: &T,
    buckets: &B,
    ends: &Ends,
    now_ns: u64,
) {
    each_limit(tables, |limit_index| {
        if let Some(toll) = toll(tables, ends, limit_index, now_ns) {
            let mut location = B::Location::default();
            let mut search = Search::SINGLE;
            buckets.find(&toll.key, toll.unit, &mut search, &mut location);
            // If there is no room for the bucket, nothing is taken.
            let _ = buckets.update(&mut location, now_ns, &mut { toll.token });
        }
    });
}
