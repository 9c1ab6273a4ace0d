//! Waits until all programs that are running now have ended.

use std::{
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
};

use super::{
    DatapathError,
    syscall::{Command, bpf},
};

/// The attributes of the command that creates a map, up to the inner map's descriptor.
#[repr(C)]
struct Create {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
    flags: u32,
    inner: u32,
}

/// The attributes of the command that changes an element.
#[repr(C)]
struct Update {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// From linux/bpf.h.
const ARRAY: u32 = 2;
const ARRAY_OF_MAPS: u32 = 12;

/// Returns once every program that was running at the call, on any CPU, has ended.
///
/// When an inner map of a map is replaced, the kernel waits for running programs before the system
/// call returns, so that no program uses the old map. (membarrier(2) also waits, but not for CPUs
/// that run without a tick.)
pub(super) fn wait_for_running_programs() -> Result<(), DatapathError> {
    wait().map_err(DatapathError::GracePeriod)
}

fn wait() -> io::Result<()> {
    let inner = create(ARRAY, 0)?;
    let inner = inner.as_raw_fd().cast_unsigned();
    let outer = create(ARRAY_OF_MAPS, inner)?;
    let key = 0_u32;
    let mut update = Update {
        map: outer.as_raw_fd().cast_unsigned(),
        padding: 0,
        key: (&raw const key).expose_provenance() as u64,
        value: (&raw const inner).expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY: key and value have four bytes each, as the map's have, and outlive the call.
    unsafe { bpf(Command::UpdateElement, &mut update) }.map(drop)
}

fn create(kind: u32, inner: u32) -> io::Result<OwnedFd> {
    let mut attributes = Create {
        kind,
        key_size: 4,
        value_size: 4,
        entries: 1,
        flags: 0,
        inner,
    };
    // SAFETY: the attributes hold no address.
    let descriptor = unsafe { bpf(Command::CreateMap, &mut attributes) }?;
    // SAFETY: the kernel has just opened it, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
