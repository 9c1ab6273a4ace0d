//! Writes whole arrays.

use aya::{Ebpf, maps::Array};

use super::{
    DatapathError, batch,
    pod::{InMap, PlainBytes},
};

/// Writes an array's entries from the first one on.
pub(super) fn write<T: PlainBytes>(
    ebpf: &mut Ebpf,
    map: &'static str,
    values: &[T],
) -> Result<(), DatapathError> {
    let error = |source| DatapathError::Map { map, source };
    let array = ebpf.map(map).ok_or(DatapathError::Missing(map))?;
    // Compares the entries' size with that of `T`.
    let array = Array::<_, InMap<T>>::try_from(array).map_err(error)?;
    // No array has more.
    let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let keys: Vec<u32> = (0..count).collect();
    let values: Vec<_> = values.iter().copied().map(InMap).collect();
    batch::update(&array, &keys, &values).map_err(error)
}
