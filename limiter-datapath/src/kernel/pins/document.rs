//! A document in a BPF map. The map is pinned beside the programs that the document describes, so
//! both exist or neither does.

use std::path::Path;

use aya::maps::{Array, Map, MapData, MapError};
use serde::{Serialize, de::DeserializeOwned};

use crate::kernel::chain::chain;

/// The size of an entry of the map.
const PAGE: usize = 4096;

/// The length of the text comes first, as an 8-byte little-endian number.
const HEADER: usize = 8;

/// A document cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The kernel refused the operation.
    #[error("{}", chain(.0))]
    Map(#[from] MapError),
    /// The document has a form that this version does not know.
    #[error("it cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// The document cannot be pinned, or is not pinned.
    #[error("{}", chain(.0))]
    Pin(#[from] aya::pin::PinError),
}

pub(super) fn pin(path: &Path, document: &impl Serialize) -> Result<(), DocumentError> {
    let text = serde_json::to_vec(document)?;
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text);
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    let (pages, _) = bytes.as_chunks::<PAGE>();
    let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
    let mut map = Array::<_, [u8; PAGE]>::create(count, 0)?;
    for (index, page) in (0..).zip(pages) {
        map.set(index, page, 0)?;
    }
    Ok(map.pin(path)?)
}

pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, DocumentError> {
    let map = Map::from_map_data(MapData::from_pin(path)?)?;
    let map = Array::<_, [u8; PAGE]>::try_from(map)?;
    let mut bytes = Vec::new();
    for index in 0..map.len() {
        bytes.extend(map.get(&index, 0)?);
    }
    let (length, text) = bytes
        .split_first_chunk::<HEADER>()
        .unwrap_or((&[0; HEADER], &[]));
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    // A text shorter than its stated length is not valid JSON either.
    Ok(serde_json::from_slice(
        text.get(..length).unwrap_or_default(),
    )?)
}
