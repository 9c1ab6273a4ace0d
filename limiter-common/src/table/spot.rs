//! Where in the table a bucket is.

use super::{HashKey, Line, Place, WAYS, name, read};
use crate::{bucket::Search, limit::LimitId, owner::BucketKey, unit::UNIT_BITS};

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
    look(line, index, name(place, limit, unit), spot)
}

/// Looks for a stamp of the bucket in a spot, by the stamp's number, in the same way.
#[inline(always)]
pub fn find_stamp<L: Line>(
    lines: u32,
    line: impl FnOnce(u32) -> Option<L>,
    bucket: &Spot,
    number: u64,
    unit: u32,
    spot: &mut Spot,
) -> u64 {
    const UNIT: u64 = (1 << UNIT_BITS) - 1;
    let stamp = number + 1;
    // What tells a place is in two parts here: the line in one, the tag in the other.
    let tag = Place(bucket.name).of_stamp(stamp).0 >> 32 << 32 | bucket.name & 0xffff_ffff;
    let line_place = Place(bucket.line.into()).of_stamp(stamp);
    let index = (line_place.0 & 0x00ff_ffff) as u32 & lines.wrapping_sub(1);
    look(line, index, tag & !UNIT | u64::from(unit) & UNIT, spot)
}

/// Looks for the bucket of that name in a line; returns its state.
#[inline(always)]
fn look<L: Line>(
    line: impl FnOnce(u32) -> Option<L>,
    index: u32,
    name: u64,
    spot: &mut Spot,
) -> u64 {
    let (way, state) = match line(index) {
        Some(line) => read(&line, name),
        None => (WAYS, 0),
    };
    spot.name = name;
    spot.line = index;
    spot.way = way;
    state
}
