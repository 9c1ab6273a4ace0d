//! Changes many map entries in one system call. With one call per entry, the calls would take most
//! of the time of loading a policy or reading a map.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _},
};

use aya::{
    Pod,
    maps::{IterableMap, MapError},
    sys::SyscallError,
};

use super::syscall::{self, bpf};

#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    LookUp,
    LookUpAndDelete,
    Update,
    Delete,
}

impl Command {
    const fn name(self) -> &'static str {
        match self {
            Self::LookUp => "bpf_map_lookup_batch",
            Self::LookUpAndDelete => "bpf_map_lookup_and_delete_batch",
            Self::Update => "bpf_map_update_batch",
            Self::Delete => "bpf_map_delete_batch",
        }
    }
}

/// A batch command's attributes: `batch` in `union bpf_attr`.
#[repr(C)]
pub(super) struct Attributes {
    /// The position to continue from, as the kernel returned it; null: the start.
    pub(super) in_batch: u64,
    /// Receives the position to continue from.
    pub(super) out_batch: u64,
    /// The keys.
    pub(super) keys: u64,
    /// The values.
    pub(super) values: u64,
    /// The number of entries; after the call, the number of entries that the kernel read or wrote.
    pub(super) count: u32,
    /// The map's descriptor.
    pub(super) map: u32,
    /// Flags of the map.
    pub(super) elem_flags: u64,
    /// Flags of the command: none exist.
    pub(super) flags: u64,
}

impl Attributes {
    /// Passes the command to the kernel.
    ///
    /// # Safety
    ///
    /// The addresses must point to `count` keys and values of the map's sizes, and to positions of
    /// 4 bytes each. The kernel must be allowed to read all of them and, for a look-up, to write to
    /// them.
    pub(super) unsafe fn call(&mut self, command: Command) -> io::Result<()> {
        let command = match command {
            Command::LookUp => syscall::Command::LookUpBatch,
            Command::LookUpAndDelete => syscall::Command::LookUpAndDeleteBatch,
            Command::Update => syscall::Command::UpdateBatch,
            Command::Delete => syscall::Command::DeleteBatch,
        };
        // SAFETY: the caller's promise.
        unsafe { bpf(command, self) }.map(drop)
    }
}

pub(super) fn refused(command: Command, io_error: io::Error) -> MapError {
    let call = command.name();
    SyscallError { call, io_error }.into()
}

/// Writes one entry for each pair of key and value.
pub(super) fn update<K: Pod, V: Pod>(
    map: &impl IterableMap<K, V>,
    keys: &[K],
    values: &[V],
) -> Result<(), MapError> {
    // No map has more entries.
    let count = u32::try_from(keys.len().min(values.len())).unwrap_or(u32::MAX);
    let mut update = Attributes {
        in_batch: 0,
        out_batch: 0,
        keys: keys.as_ptr().addr() as u64,
        values: values.as_ptr().addr() as u64,
        count,
        map: map.map().fd().as_fd().as_raw_fd().cast_unsigned(),
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `count` keys and values. aya compared their sizes with the map's when it
    // opened the map. No byte is undefined, and all of them outlive the call.
    unsafe { update.call(Command::Update) }.map_err(|error| refused(Command::Update, error))
}

/// Removes entries. Stops at the first missing entry.
pub(super) fn delete<K: Pod, V: Pod>(
    map: &impl IterableMap<K, V>,
    keys: &[K],
) -> Result<(), MapError> {
    let mut delete = Attributes {
        in_batch: 0,
        out_batch: 0,
        keys: keys.as_ptr().addr() as u64,
        values: 0,
        count: u32::try_from(keys.len()).unwrap_or(u32::MAX),
        map: map.map().fd().as_fd().as_raw_fd().cast_unsigned(),
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: the kernel reads `count` keys. aya compared their size with the map's when it opened the map.
    // No byte is undefined, and they outlive the call.
    unsafe { delete.call(Command::Delete) }.map_err(|error| refused(Command::Delete, error))
}
