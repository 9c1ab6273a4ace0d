//! Writes whole arrays.

use std::os::fd::{AsFd as _, AsRawFd as _};

use aya::{
    Ebpf,
    maps::{Array, IterableMap as _},
};

use super::{
    DatapathError,
    batch::{Attributes, Command, refused},
    pod::{InMap, PlainBytes},
};

/// Writes an array's entries from the first one on.
pub(super) fn write<T: PlainBytes>(
    ebpf: &mut Ebpf,
    map: &'static str,
    values: &[T],
) -> Result<(), DatapathError> {
    write_at(ebpf, map, (0..).zip(values.iter().copied()))
}

/// Writes some of an array's entries, by their indices.
pub(super) fn write_at<T: PlainBytes>(
    ebpf: &mut Ebpf,
    map: &'static str,
    entries: impl Iterator<Item = (u32, T)>,
) -> Result<(), DatapathError> {
    let error = |source| DatapathError::Map { map, source };
    let array = ebpf.map(map).ok_or(DatapathError::Missing(map))?;
    // Compares the entries' size with that of `T`.
    let array = Array::<_, InMap<T>>::try_from(array).map_err(error)?;
    let (keys, values): (Vec<u32>, Vec<T>) = entries.unzip();
    let mut update = Attributes {
        in_batch: 0,
        out_batch: 0,
        keys: keys.as_ptr().addr() as u64,
        values: values.as_ptr().addr() as u64,
        // No array has more.
        count: u32::try_from(values.len()).unwrap_or(u32::MAX),
        map: array.map().fd().as_fd().as_raw_fd().cast_unsigned(),
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `count` keys of four bytes and as many values, the size of which
    // has been compared and of which no byte is undefined. All of them outlive the call.
    unsafe { update.call(Command::Update) }
        .map_err(|io_error| error(refused(Command::Update, io_error)))
}
