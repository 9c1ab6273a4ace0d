//! The bytes of the state file.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | the version, [`VERSION`], in little-endian order as the other numbers |
//! | 8 | how many bytes the sections have |
//! | … | the sections, in the [postcard format](https://postcard.jamesmunns.com/wire-format) |
//! | 4 | CRC-32 of all before |
//!
//! The sections are the names with the time, the debts, the bans, and the sieves. Nothing in the
//! bytes says where a value ends, so a reader cannot skip what it does not know: it reads one
//! version only.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{SavedBan, SavedSieve, SetDebts, Snapshot};
use crate::policy::{Names, Sieve};

const MAGIC: [u8; 8] = *b"limiter\0";

/// The version that is written and read. Raise it whenever a section changes.
const VERSION: u32 = 3;

const HEADER: usize = MAGIC.len() + 4 + 8;

const CHECKSUM: usize = 4;

/// The largest file, in bytes: all buckets of the largest table in debt, and as many bans and
/// addresses in sieves as there may be, at the most bytes each.
pub(super) const MAX_BYTES: u64 =
    64 * 1024 * 1024 * 25 + 4 * 1024 * 1024 * 136 + 3 * Sieve::MOST_ENTRIES * 32 + 1024 * 1024;

/// Bytes that are no snapshot.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FormatError {
    /// It begins otherwise.
    #[error("it is no state file of limiter's")]
    Foreign,
    /// Another release has written it.
    #[error("it is of version {0}, and this limiter reads version {VERSION} only")]
    Version(u32),
    /// It is shorter or longer than it says.
    #[error("it has {found} bytes instead of {expected}")]
    Length {
        /// How many it should have.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// It has changed since it was written.
    #[error("its checksum is wrong")]
    Checksum,
    /// Its checksum is right, and yet it means nothing.
    #[error("it makes no sense: {0}")]
    Content(String),
}

/// The first section.
#[derive(Serialize, Deserialize)]
struct Head<N> {
    saved_at: Timestamp,
    names: N,
}

/// The bytes of a snapshot.
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
    let length = (bytes.len() - HEADER) as u64;
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..HEADER].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    Ok(bytes)
}

/// The snapshot of which these are the bytes.
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
    if version != VERSION {
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
    let content = |error: postcard::Error| FormatError::Content(error.to_string());
    let (head, sections) = postcard::take_from_bytes::<Head<Names>>(sections).map_err(content)?;
    let (sets, sections) = postcard::take_from_bytes::<Vec<SetDebts>>(sections).map_err(content)?;
    let (bans, sections) = postcard::take_from_bytes::<Vec<SavedBan>>(sections).map_err(content)?;
    let (sieves, sections) =
        postcard::take_from_bytes::<Vec<SavedSieve>>(sections).map_err(content)?;
    if !sections.is_empty() {
        let more = format!("{} bytes are left over", sections.len());
        return Err(FormatError::Content(more));
    }
    Ok(Snapshot {
        saved_at: head.saved_at,
        names: head.names,
        sets,
        bans,
        sieves,
    })
}
