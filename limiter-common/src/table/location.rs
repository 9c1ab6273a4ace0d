//! The location of a bucket in the table.

use core::hint::black_box;

use super::{HashKey, InsertOutcome, KeyHash, Line, WAYS, fingerprint, line, read};
use crate::{
    bucket::{Search, Swap},
    key::BucketKey,
    limit::LimitId,
    unit::UNIT_BITS,
};

/// The location of a bucket in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TableLocation {
    /// The bucket's fingerprint.
    pub fingerprint: u64,
    /// The index of its line.
    pub line: u32,
    /// Its way of the line; [`WAYS`]: it is missing.
    pub way: usize,
}

impl Default for TableLocation {
    /// The location of no bucket.
    fn default() -> Self {
        Self {
            fingerprint: 0,
            line: 0,
            way: WAYS,
        }
    }
}

/// Looks up a bucket in a table of `lines` lines; `line` returns a line by index. Returns the
/// bucket's state, or 0 if it is missing.
#[inline(always)]
pub fn find<L: Line>(
    hash_key: &HashKey,
    lines: u32,
    line: impl FnOnce(u32) -> Option<L>,
    key: &BucketKey,
    unit: u32,
    search: &mut Search,
    location: &mut TableLocation,
) -> u64 {
    let hash = hash_of(search, hash_key, key);
    let limit = LimitId(key.limit);
    let index = hash.line(limit, lines);
    find_in_line(line, index, fingerprint(hash, limit, unit), location)
}

/// Returns the hash of a key, which is no part, and keeps it in the search.
#[inline(always)]
fn hash_of(search: &mut Search, hash_key: &HashKey, key: &BucketKey) -> KeyHash {
    let (kind, id) = key.key_words();
    let hashed = &mut search.hashed[usize::from(key.key_kind().has_length())];
    // One comparison, because the kernel's verifier walks the rest once for each way through several.
    if (hashed.kind ^ kind) | (hashed.id[0] ^ id[0]) | (hashed.id[1] ^ id[1]) != 0 {
        hashed.kind = kind;
        hashed.id = id;
        // Read again from memory, for which a kernel's program has no registers to spare.
        let hashed = black_box(&mut *hashed);
        hashed.hash = hash_key.whole_key_hash(hashed.kind, hashed.id).0;
    }
    KeyHash(hashed.hash)
}

/// Looks up a part of the bucket at a location, by the part's number.
#[inline(always)]
pub fn find_part<L: Line>(
    lines: u32,
    line: impl FnOnce(u32) -> Option<L>,
    bucket: &TableLocation,
    number: u64,
    unit: u32,
    location: &mut TableLocation,
) -> u64 {
    const UNIT: u64 = (1 << UNIT_BITS) - 1;
    let part = number + 1;
    // The location has the hash in two pieces: the line, and the tag in the fingerprint.
    let tag =
        KeyHash(bucket.fingerprint).of_part(part).0 >> 32 << 32 | bucket.fingerprint & 0xffff_ffff;
    let line_hash = KeyHash(bucket.line.into()).of_part(part);
    let index = (line_hash.0 & 0x00ff_ffff) as u32 & lines.wrapping_sub(1);
    find_in_line(line, index, tag & !UNIT | u64::from(unit) & UNIT, location)
}

/// Looks up the bucket with this fingerprint in a line; returns its state.
#[inline(always)]
fn find_in_line<L: Line>(
    line: impl FnOnce(u32) -> Option<L>,
    index: u32,
    fingerprint: u64,
    location: &mut TableLocation,
) -> u64 {
    location.fingerprint = fingerprint;
    location.line = index;
    find_again(line, location)
}

/// Looks up the bucket at a location again, in the same line; returns its state.
#[inline(always)]
pub fn find_again<L: Line>(
    line: impl FnOnce(u32) -> Option<L>,
    location: &mut TableLocation,
) -> u64 {
    let (way, state) = match line(location.line) {
        Some(line) => read(&line, location.fingerprint),
        None => (WAYS, 0),
    };
    location.way = way;
    state
}

/// Replaces the state of the bucket at a location, like
/// [`BucketTable::swap`](crate::bucket::BucketTable::swap). `insert` and `exchange` are the table's
/// functions, for a missing bucket.
#[inline(always)]
pub fn swap<L: Line>(
    line: impl FnOnce(u32) -> Option<L>,
    location: &TableLocation,
    seen: u64,
    wanted: u64,
    insert: impl FnOnce() -> InsertOutcome,
    exchange: impl FnOnce() -> bool,
) -> Swap {
    let way = location.way;
    if way >= WAYS {
        return insert().or_exchange(exchange);
    }
    match line(location.line) {
        Some(line) => line::swap(&line, way, location.fingerprint, seen, wanted),
        None => Swap::Unavailable,
    }
}
