//! The bytes of the state file.
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | the version, [`VERSION`]; all numbers are little-endian |
//! | 8 | the length of the sections in bytes |
//! | … | the sections, in the [postcard format](https://postcard.jamesmunns.com/wire-format) |
//! | 4 | CRC-32 of everything before |
//!
//! The sections are the names with the time, the debts, the bans, the sieves, the known sources, and
//! the hits of bans. The bytes do not mark the ends of values, so a reader cannot skip unknown
//! values. It reads only its own version, [`BEFORE_HITS`] and [`BEFORE_ORIGINS`].

use jiff::Timestamp;
use limiter_policy::policy::{Names, Sieve};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    SavedBan, SavedHits, SavedSieve, SavedSources, SetDebts, Snapshot, bans::SavedBan4, known,
};

const MAGIC: [u8; 8] = *b"limiter\0";

/// The version that is written. Raise it whenever a section changes.
const VERSION: u32 = 6;

/// The version without the hits of bans, which is otherwise the same.
const BEFORE_HITS: u32 = 5;

/// The version without hits and without origins of bans, which is otherwise the same.
const BEFORE_ORIGINS: u32 = 4;

const HEADER: usize = MAGIC.len() + 4 + 8;

const CHECKSUM: usize = 4;

/// The size limit in bytes: all buckets of the largest table in debt, and the maximum number of
/// bans, sieve addresses and known sources, each with its longest encoding.
pub(super) const MAX_BYTES: u64 = 64 * 1024 * 1024 * 25
    + 4 * 1024 * 1024 * (137 + 38)
    + 3 * Sieve::MOST_ENTRIES * 32
    + known::MOST as u64 * 20
    + 1024 * 1024;

/// The reason why bytes are not a snapshot.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FormatError {
    /// The bytes do not begin like a state file.
    #[error("it is not a state file of the limiter")]
    Foreign,
    /// Another release wrote the file.
    #[error(
        "its version is {0}, but this limiter reads only versions {BEFORE_ORIGINS} to {VERSION}"
    )]
    Version(u32),
    /// The number of bytes differs from the stated length.
    #[error("it has {found} bytes instead of {expected}")]
    Length {
        /// The expected length.
        expected: u64,
        /// The actual length.
        found: u64,
    },
    /// The bytes have changed since they were written.
    #[error("its checksum is wrong")]
    Checksum,
    /// The checksum is right, but the contents are invalid.
    #[error("its contents are invalid: {0}")]
    Content(#[from] postcard::Error),
    /// The checksum is right, but the sections end before the bytes do.
    #[error(
        "its contents are invalid: {0} byte{plural} too many",
        plural = if *.0 == 1 { "" } else { "s" }
    )]
    TooMany(usize),
}

/// The first section.
#[derive(Serialize, Deserialize)]
struct Head<N> {
    saved_at: Timestamp,
    names: N,
}

/// Encodes a snapshot.
pub(super) fn encode(snapshot: &Snapshot) -> Result<Vec<u8>, postcard::Error> {
    let head = Head {
        saved_at: snapshot.saved_at,
        names: &snapshot.names,
    };
    let mut bytes = vec![0; HEADER];
    bytes = postcard::to_extend(&head, bytes)?;
    bytes = postcard::to_extend(&snapshot.sets, bytes)?;
    bytes = postcard::to_extend(&snapshot.bans, bytes)?;
    bytes = postcard::to_extend(&snapshot.sieves, bytes)?;
    bytes = postcard::to_extend(&snapshot.known, bytes)?;
    bytes = postcard::to_extend(&snapshot.hits, bytes)?;
    let length = (bytes.len() - HEADER) as u64;
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..HEADER].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    Ok(bytes)
}

/// Decodes a snapshot.
pub(super) fn decode(bytes: &[u8]) -> Result<Snapshot, FormatError> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(FormatError::Foreign)?;
    let cut_short = |expected: usize| FormatError::Length {
        expected: expected as u64,
        found: bytes.len() as u64,
    };
    let least = HEADER + CHECKSUM;
    let (version, rest) = rest.split_first_chunk().ok_or_else(|| cut_short(least))?;
    let (length, rest) = rest.split_first_chunk().ok_or_else(|| cut_short(least))?;
    let version = u32::from_le_bytes(*version);
    if !(BEFORE_ORIGINS..=VERSION).contains(&version) {
        return Err(FormatError::Version(version));
    }
    let expected = u64::from_le_bytes(*length).saturating_add(least as u64);
    if expected != bytes.len() as u64 {
        return Err(FormatError::Length {
            expected,
            found: bytes.len() as u64,
        });
    }
    let (sections, checksum) = rest.split_last_chunk().ok_or_else(|| cut_short(least))?;
    if crc32fast::hash(&bytes[..bytes.len() - CHECKSUM]) != u32::from_le_bytes(*checksum) {
        return Err(FormatError::Checksum);
    }
    let (head, sections) = postcard::take_from_bytes::<Head<Names>>(sections)?;
    let (sets, sections) = postcard::take_from_bytes::<Vec<SetDebts>>(sections)?;
    let (bans, sections) = if version == BEFORE_ORIGINS {
        let (bans, sections) = postcard::take_from_bytes::<Vec<SavedBan4>>(sections)?;
        (bans.into_iter().map(SavedBan::from).collect(), sections)
    } else {
        postcard::take_from_bytes::<Vec<SavedBan>>(sections)?
    };
    let (sieves, sections) = postcard::take_from_bytes::<Vec<SavedSieve>>(sections)?;
    let (known, sections) = postcard::take_from_bytes::<SavedSources>(sections)?;
    let (hits, sections) = if version <= BEFORE_HITS {
        (Vec::new(), sections)
    } else {
        postcard::take_from_bytes::<Vec<SavedHits>>(sections)?
    };
    if !sections.is_empty() {
        return Err(FormatError::TooMany(sections.len()));
    }
    Ok(Snapshot {
        saved_at: head.saved_at,
        names: head.names,
        sets,
        bans,
        hits,
        sieves,
        known,
    })
}
