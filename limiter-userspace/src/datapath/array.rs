//! Writes whole arrays: a system call for each entry would take most of the time that loading a
//! policy takes.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _},
};

use aya::{
    Ebpf,
    maps::{Array, IterableMap as _},
    sys::SyscallError,
};

use super::{
    DatapathError,
    pod::{InMap, PlainBytes},
};

/// `BPF_MAP_UPDATE_BATCH`, from linux/bpf.h (Linux 5.6).
const BPF_MAP_UPDATE_BATCH: libc::c_int = 26;

/// What the command takes: `batch` in `union bpf_attr`.
#[repr(C)]
struct Update {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    elem_flags: u64,
    flags: u64,
}

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
    let mut update = Update {
        in_batch: 0,
        out_batch: 0,
        keys: keys.as_ptr().addr() as u64,
        values: values.as_ptr().addr() as u64,
        count,
        map: array.map().fd().as_fd().as_raw_fd().cast_unsigned(),
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `count` keys of four bytes and as many values, the size of which
    // has been compared and of which no byte is undefined; it writes to `count`. All of them
    // outlive the call.
    let written = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_UPDATE_BATCH,
            &raw mut update,
            size_of::<Update>(),
        )
    };
    if written < 0 {
        let io_error = io::Error::last_os_error();
        let call = "bpf_map_update_batch";
        return Err(error(SyscallError { call, io_error }.into()));
    }
    Ok(())
}
