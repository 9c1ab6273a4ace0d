//! The charge for a completed handshake.

use limiter_common::{
    bucket::{BucketTable as _, Search},
    connection::{HandshakeCharge, HandshakeToken},
};

use super::{BucketLocation, IN_HASH, IN_TABLE, MapBuckets, in_table};
use crate::globals;

/// A token, and the location of its bucket.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct LocatedToken {
    location: BucketLocation,
    token: HandshakeToken,
}

impl LocatedToken {
    #[inline(always)]
    pub(crate) fn find(&mut self, handshake_charge: &HandshakeCharge) {
        let mut search = Search::SINGLE;
        let location = &mut self.location;
        MapBuckets::<true>.find(
            &handshake_charge.key,
            handshake_charge.unit,
            &mut search,
            location,
        );
        self.token = handshake_charge.token;
    }

    /// Takes the token. If the bucket has no room, or other CPUs win every attempt, the handshake is not charged.
    #[inline(always)]
    pub(crate) fn take(&mut self) {
        if in_table() {
            limiter_take_handshake_token(self);
        } else {
            limiter_take_handshake_token_hash(self);
        }
    }
}

/// Takes a token from the table; returns 0.
///
/// Like the one below, it is a global function of the BPF object: the verifier walks it once, for any arguments. One
/// function for both tables would have two loops, and LLVM may enter one of them in the middle, which verifiers before
/// Linux 6.8 refuse.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_take_handshake_token(due: *mut LocatedToken) -> u32 {
    take_in::<IN_TABLE>(due)
}

/// The same for the hash map.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn limiter_take_handshake_token_hash(due: *mut LocatedToken) -> u32 {
    take_in::<IN_HASH>(due)
}

#[inline(always)]
fn take_in<const STORE: u32>(due: *mut LocatedToken) -> u32 {
    // SAFETY: the verifier lets a caller pass null or a whole value, nothing else; the caller owns it and does not use
    // it meanwhile.
    if let Some(due) = unsafe { due.as_mut() }
        // Older verifiers walk this function even if the policy has no such limits, or another store.
        && globals::features().handshakes != 0
        && in_table() == (STORE == IN_TABLE)
    {
        let LocatedToken { location, token } = due;
        let _ = MapBuckets::<true, STORE>.update(location, token.now_ns, token);
    }
    0
}
