//! Charges completed handshakes to the limits on handshakes.

use limiter_common::connection::{Ends, each_limit, handshake_charge};

use crate::{buckets::handshake_charge::LocatedToken, globals, tables::MapTables};

#[inline(always)]
pub(crate) fn are_limited() -> bool {
    globals::features().handshakes != 0
}

/// Charges a handshake, completed at the time `now_ns`, to each limit that counts it.
#[inline(always)]
pub(crate) fn charge(ends: &Ends, now_ns: u64) {
    each_limit(&MapTables, |limit_index| {
        let mut due = LocatedToken::default();
        if limiter_find_handshake_charge(ends, limit_index, now_ns, &raw mut due) == 1 {
            due.take();
        }
    });
}

/// Calls [`handshake_charge`]; returns 1 if there is a charge, and stores it in `due`.
///
/// It is a global function of the BPF object: the verifier walks it once, for any arguments, and it has a stack of its
/// own.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_find_handshake_charge(
    ends: *const Ends,
    limit_index: u32,
    now_ns: u64,
    due: *mut LocatedToken,
) -> u32 {
    // Older verifiers walk this function even if the policy has no such limits.
    if !are_limited() {
        return 0;
    }
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the caller owns both and does not
    // use them meanwhile.
    let (Some(ends), Some(due)) = (unsafe { (ends.as_ref(), due.as_mut()) }) else {
        return 0;
    };
    match handshake_charge(&MapTables, ends, limit_index, now_ns) {
        Some(handshake_charge) => {
            due.find(&handshake_charge);
            1
        }
        None => 0,
    }
}
