//! Many entries of a map in one system call: with one for each, most of the time that loading a
//! policy or reading a map takes would go into them.

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

/// A command on many entries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    LookUp,
    Update,
    Delete,
}

impl Command {
    const fn name(self) -> &'static str {
        match self {
            Self::LookUp => "bpf_map_lookup_batch",
            Self::Update => "bpf_map_update_batch",
            Self::Delete => "bpf_map_delete_batch",
        }
    }
}

/// What such a command takes: `batch` in `union bpf_attr`.
#[repr(C)]
pub(super) struct Attributes {
    /// Where to go on, as the kernel has told it; null: at the start.
    pub(super) in_batch: u64,
    /// Where the kernel tells where to go on.
    pub(super) out_batch: u64,
    /// The keys.
    pub(super) keys: u64,
    /// The values.
    pub(super) values: u64,
    /// How many there are; afterwards, how many the kernel has read or written.
    pub(super) count: u32,
    /// The map's descriptor.
    pub(super) map: u32,
    /// Flags of the map.
    pub(super) elem_flags: u64,
    /// Flags of the command: there are none.
    pub(super) flags: u64,
}

impl Attributes {
    /// Gives the command to the kernel.
    ///
    /// # Safety
    ///
    /// The addresses must be those of as many keys and values as `count` says, of the map's own
    /// sizes, and of the places where to go on, 4 bytes each; all of them such that the kernel
    /// may read them and, when looking up, write to them.
    pub(super) unsafe fn call(&mut self, command: Command) -> io::Result<()> {
        let command = match command {
            Command::LookUp => syscall::Command::LookUpBatch,
            Command::Update => syscall::Command::UpdateBatch,
            Command::Delete => syscall::Command::DeleteBatch,
        };
        // SAFETY: the caller's promise.
        unsafe { bpf(command, self) }.map(drop)
    }
}

/// The kernel's refusal of a command.
pub(super) fn refused(command: Command, io_error: io::Error) -> MapError {
    let call = command.name();
    SyscallError { call, io_error }.into()
}

/// Writes as many entries as there are keys and values.
pub(super) fn update<K: Pod, V: Pod>(
    map: &impl IterableMap<K, V>,
    keys: &[K],
    values: &[V],
) -> Result<(), MapError> {
    // No map has more.
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
    // SAFETY: the kernel reads as many keys and values, the sizes of which aya compared with the
    // map's when it was opened, and of which no byte is undefined. All of them outlive the call.
    unsafe { update.call(Command::Update) }.map_err(|error| refused(Command::Update, error))
}

/// Removes entries, up to the first that is not there.
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
    // SAFETY: the kernel reads as many keys, the size of which aya compared with the map's when it
    // was opened, and of which no byte is undefined. They outlive the call.
    unsafe { delete.call(Command::Delete) }.map_err(|error| refused(Command::Delete, error))
}
