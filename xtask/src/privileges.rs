//! Checks the privileges for tests and measurements in the kernel.

use std::{io, thread};

use anyhow::{Result, bail};
use nix::{
    sched::{CloneFlags, unshare},
    unistd::geteuid,
};

/// Fails with the reason if this process cannot load BPF programs or make network namespaces. `purpose`
/// explains the need.
pub(crate) fn check(purpose: &str) -> Result<()> {
    check_bpf(purpose)?;
    if let Err(error) = unshare_network() {
        bail!(
            "the kernel refuses a new network namespace ({error}): run with CAP_SYS_ADMIN and with namespaces enabled"
        );
    }
    Ok(())
}

/// Fails with the reason if this process cannot load BPF programs. `purpose` explains the need.
pub(crate) fn check_bpf(purpose: &str) -> Result<()> {
    check_root(purpose)?;
    if let Err(error) = create_map() {
        bail!(
            "the kernel refuses to create a BPF map ({error}): run with CAP_BPF and a locked-memory limit that allows it, outside a container's seccomp filter"
        );
    }
    Ok(())
}

/// Fails if this process is not root. `purpose` explains the need.
pub(crate) fn check_root(purpose: &str) -> Result<()> {
    if !geteuid().is_root() {
        bail!("{purpose}: run as root");
    }
    Ok(())
}

/// The members of `union bpf_attr` that `BPF_MAP_CREATE` requires (linux/bpf.h).
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

fn create_map() -> io::Result<()> {
    const BPF_MAP_CREATE: libc::c_long = 0;
    const BPF_MAP_TYPE_ARRAY: u32 = 2;
    let attributes = MapCreate {
        map_type: BPF_MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        map_flags: 0,
    };
    // SAFETY: the kernel reads at most the given size of `attributes`, and only during the call.
    let map = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_CREATE,
            &raw const attributes,
            size_of::<MapCreate>(),
        )
    };
    // The process's end closes the descriptor: this runs once.
    if map < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Must run in its own thread: the thread moves to the new namespace, and ends at once.
fn unshare_network() -> io::Result<()> {
    let unshared = thread::spawn(|| Ok(unshare(CloneFlags::CLONE_NEWNET)?));
    unshared
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
}
