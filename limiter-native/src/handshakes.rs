//! Handshakes that the caller declares completed.

use limiter_common::{
    bucket::{BucketTable, Search},
    connection::{Ends, each_limit, handshake_charge},
    policy::Tables,
};

/// Charges a handshake, completed at the time `now_ns`, to each limit that counts it, as the kernel's
/// program does.
pub fn complete_handshake<T: Tables, B: BucketTable>(
    tables: &T,
    buckets: &B,
    ends: &Ends,
    now_ns: u64,
) {
    each_limit(tables, |limit_index| {
        if let Some(handshake_charge) = handshake_charge(tables, ends, limit_index, now_ns) {
            let mut location = B::Location::default();
            let mut search = Search::SINGLE;
            buckets.find(
                &handshake_charge.key,
                handshake_charge.unit,
                &mut search,
                &mut location,
            );
            // Without room for the bucket, no token is taken.
            let _ = buckets.update(&mut location, now_ns, &mut { handshake_charge.token });
        }
    });
}
