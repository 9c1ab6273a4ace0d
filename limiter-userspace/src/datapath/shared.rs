//! Where instances of the program find the maps they share.
//!
//! Maps are shared by pinning them under a name. Without a wish to outlive the process, they
//! are pinned in a BPF filesystem that is mounted nowhere: only this process's descriptor
//! holds it, so nothing is left behind however the process ends.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use super::DatapathError;

/// A directory for pinned maps that lives as long as this value.
pub(super) struct SharedDirectory {
    path: PathBuf,
    /// Keeps the filesystem.
    _mount: OwnedFd,
}

impl SharedDirectory {
    pub(super) fn new() -> Result<Self, DatapathError> {
        let mount = detached_bpf_filesystem().map_err(DatapathError::Filesystem)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self {
            path,
            _mount: mount,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The root of a new BPF filesystem that is not part of any mount tree (Linux 5.2).
fn detached_bpf_filesystem() -> io::Result<OwnedFd> {
    const KIND: &CStr = c"bpf";
    // From linux/mount.h.
    const FSOPEN_CLOEXEC: libc::c_uint = 1;
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    const FSMOUNT_CLOEXEC: libc::c_uint = 1;

    // SAFETY: the name is a C string that outlives the call.
    let context =
        descriptor(unsafe { libc::syscall(libc::SYS_fsopen, KIND.as_ptr(), FSOPEN_CLOEXEC) })?;
    // SAFETY: this command takes no key, value or auxiliary argument.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            std::ptr::null::<u8>(),
            std::ptr::null::<u8>(),
            0,
        )
    };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: takes numbers only.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0) })
}

/// The descriptor that a system call returned.
fn descriptor(returned: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(returned) {
        // SAFETY: the system call has just opened it, and nothing else owns it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
