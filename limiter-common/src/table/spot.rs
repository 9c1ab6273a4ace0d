//! Where in the table a bucket is.

use super::{HashKey, Line, Place, WAYS, name, read};
use crate::{
    bucket::{BucketKey, Search},
    limit::LimitId,
};

/// Where in the table a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Spot {
    /// Its name.
    pub name: u64,
    /// The index of its line.
    pub line: u32,
    /// Its way of the line; [`WAYS`]: it is in none.
    pub way: usize,
}

impl Default for Spot {
    /// Of no bucket.
    fn default() -> Self {
        Self {
            name: 0,
            line: 0,
            way: WAYS,
        }
    }
}

/// Looks for a bucket in a table of `lines` lines, each of which `line` returns by its index;
/// returns its state, which is 0 when it is not there.
#[inline(always)]
pub fn find<L: Line>(
    hash_key: &HashKey,
    lines: u32,
    line: impl FnOnce(u32) -> Option<L>,
    key: &BucketKey,
    unit: u32,
    search: &mut Search,
    spot: &mut Spot,
) -> u64 {
    let kind = key.owner_kind();
    if search.hashed != kind {
        search.hash = hash_key.place(key).0;
        search.hashed = kind;
    }
    let (place, limit) = (Place(search.hash), LimitId(key.limit));
    let index = place.line(limit, lines);
    let name = name(place, limit, unit);
    let (way, state) = match line(index) {
        Some(line) => read(&line, name),
        None => (WAYS, 0),
    };
    spot.name = name;
    spot.line = index;
    spot.way = way;
    state
}
