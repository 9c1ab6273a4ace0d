//! Writes many entries of an array map in one system call.

use aya::{Ebpf, maps::Array};

use super::{
    DatapathError, batch,
    pod::{InMap, PlainBytes},
};

/// Writes an array's entries, starting with the first.
pub(super) fn write<T: PlainBytes>(
    ebpf: &mut Ebpf,
    map: &'static str,
    values: &[T],
) -> Result<(), DatapathError> {
    write_at(ebpf, map, (0..).zip(values.iter().copied()))
}

/// Writes the entries at the given indices.
pub(super) fn write_at<T: PlainBytes>(
    ebpf: &mut Ebpf,
    map: &'static str,
    entries: impl Iterator<Item = (u32, T)>,
) -> Result<(), DatapathError> {
    let error = |source| DatapathError::Map { map, source };
    let array = ebpf.map(map).ok_or(DatapathError::NoMap(map))?;
    // aya checks here that entries have the size of `T`.
    let array = Array::<_, InMap<T>>::try_from(array).map_err(error)?;
    let (keys, values): (Vec<u32>, Vec<_>) =
        entries.map(|(index, value)| (index, InMap(value))).unzip();
    batch::update(&array, &keys, &values).map_err(error)
}
