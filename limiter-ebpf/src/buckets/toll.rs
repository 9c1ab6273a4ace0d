//! What a completed handshake takes from a bucket.

use limiter_common::{
    bucket::{BucketStore as _, Search},
    connection::{Token, Toll},
};

use super::{BucketLocation, MapBuckets};

/// A token, and where its bucket is.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Due {
    location: BucketLocation,
    token: Token,
}

impl Due {
    /// Looks for the bucket of a toll.
    #[inline(always)]
    pub(crate) fn find(&mut self, toll: &Toll) {
        let mut search = Search::SINGLE;
        let location = &mut self.location;
        MapBuckets::<true>.find(&toll.key, toll.unit, &mut search, location);
        self.token = toll.token;
    }

    /// Takes the token. If there is no room for the bucket, or other CPUs win every attempt, nothing is
    /// taken.
    #[inline(always)]
    pub(crate) fn take(&mut self) {
        let Self { location, token } = self;
        let _ = MapBuckets::<true>.update(location, token.now_ns, token);
    }
}
