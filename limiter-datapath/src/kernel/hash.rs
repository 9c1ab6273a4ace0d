//! Reads whole hash maps, writes many of their entries, and removes single entries.

use std::os::fd::{AsFd as _, AsRawFd as _};

use aya::maps::{HashMap, IterableMap as _, MapData, MapError};

use super::{
    batch::{self, Attributes, Command, refused},
    pod::{InMap, PlainBytes},
};

/// The maximum number of entries per system call. The kernel reads whole chains of its table, so
/// the longest chain must fit: with a random hash, a few entries.
const ENTRIES: u32 = 8_192;

/// Reads every entry of a hash map, not at one moment: concurrently inserted entries may be
/// missing.
pub(super) fn read<K: PlainBytes, V: PlainBytes>(
    map: &HashMap<MapData, InMap<K>, InMap<V>>,
) -> Result<Vec<(K, V)>, MapError> {
    let mut entries = Vec::new();
    let mut position = None;
    loop {
        position = read_some(map, position, &mut entries)?;
        if position.is_none() {
            return Ok(entries);
        }
    }
}

/// Reads some thousand entries from a position on; `None`: from the start. Returns the next
/// position, which is the kernel's number of the next chain; `None`: no entries are left.
pub(super) fn read_some<K: PlainBytes, V: PlainBytes>(
    map: &HashMap<MapData, InMap<K>, InMap<V>>,
    position: Option<u32>,
    entries: &mut Vec<(K, V)>,
) -> Result<Option<u32>, MapError> {
    look_up(map, Command::LookUp, position, entries)
}

fn look_up<K: PlainBytes, V: PlainBytes>(
    map: &HashMap<MapData, InMap<K>, InMap<V>>,
    command: Command,
    position: Option<u32>,
    entries: &mut Vec<(K, V)>,
) -> Result<Option<u32>, MapError> {
    let mut keys = Vec::<K>::with_capacity(ENTRIES as usize);
    let mut values = Vec::<V>::with_capacity(ENTRIES as usize);
    let mut next = 0_u32;
    // Exposed provenance: the kernel writes there, which the compiler does not see.
    let mut look_up = Attributes {
        in_batch: position
            .as_ref()
            .map_or(0, |at| (&raw const *at).expose_provenance() as u64),
        out_batch: (&raw mut next).expose_provenance() as u64,
        keys: keys.as_mut_ptr().expose_provenance() as u64,
        values: values.as_mut_ptr().expose_provenance() as u64,
        count: ENTRIES,
        map: map.map().fd().as_fd().as_raw_fd().cast_unsigned(),
        elem_flags: 0,
        flags: 0,
    };
    // SAFETY: there is room for `count` keys and values, and for four bytes in each position. aya compared
    // the sizes with the map's when it opened the map. All buffers outlive the call.
    let called = unsafe { look_up.call(command) };
    let at_the_end = match called {
        Ok(()) => false,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
        Err(error) => return Err(refused(command, error)),
    };
    let count = look_up.count.min(ENTRIES) as usize;
    // SAFETY: the kernel has written that many, and any bytes are a value.
    unsafe {
        keys.set_len(count);
        values.set_len(count);
    }
    entries.extend(keys.into_iter().zip(values));
    Ok((!at_the_end).then_some(next))
}

/// Removes and returns every entry of a hash map. Entries inserted meanwhile may stay.
pub(super) fn take<K: PlainBytes, V: PlainBytes>(
    map: &HashMap<MapData, InMap<K>, InMap<V>>,
) -> Result<Vec<(K, V)>, MapError> {
    let mut entries = Vec::new();
    let mut position = None;
    loop {
        position = look_up(map, Command::LookUpAndDelete, position, &mut entries)?;
        if position.is_none() {
            return Ok(entries);
        }
    }
}

/// Writes existing and new entries, not at one moment.
pub(super) fn write<K: PlainBytes, V: PlainBytes>(
    map: &HashMap<MapData, InMap<K>, InMap<V>>,
    keys: &[InMap<K>],
    values: &[InMap<V>],
) -> Result<(), MapError> {
    let entries = ENTRIES as usize;
    for (keys, values) in keys.chunks(entries).zip(values.chunks(entries)) {
        batch::update(map, keys, values)?;
    }
    Ok(())
}

/// Removes an entry; returns whether it existed.
pub(super) fn remove<K: PlainBytes, V: PlainBytes>(
    map: &HashMap<MapData, InMap<K>, InMap<V>>,
    key: K,
) -> Result<bool, MapError> {
    match batch::delete(map, &[InMap(key)]) {
        Ok(()) => Ok(true),
        Err(MapError::SyscallError(error))
            if error.io_error.raw_os_error() == Some(libc::ENOENT) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
