//! The system call bpf(2), for commands that no library offers in the needed form.

use std::{
    ffi::CString,
    io,
    os::{
        fd::{FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use super::pod::PlainBytes;

/// A command, from linux/bpf.h.
#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    /// `BPF_MAP_CREATE`
    CreateMap = 0,
    /// `BPF_MAP_UPDATE_ELEM`
    UpdateElement = 2,
    /// `BPF_OBJ_PIN`
    Pin = 6,
    /// `BPF_OBJ_GET`
    Get = 7,
    /// `BPF_PROG_TEST_RUN`
    TestRun = 10,
    /// `BPF_OBJ_GET_INFO_BY_FD`
    Info = 15,
    /// `BPF_MAP_LOOKUP_BATCH` (Linux 5.6)
    LookUpBatch = 24,
    /// `BPF_MAP_LOOKUP_AND_DELETE_BATCH` (Linux 5.6)
    LookUpAndDeleteBatch = 25,
    /// `BPF_MAP_UPDATE_BATCH` (Linux 5.6)
    UpdateBatch = 26,
    /// `BPF_MAP_DELETE_BATCH` (Linux 5.6)
    DeleteBatch = 27,
    /// `BPF_LINK_CREATE` (for XDP, Linux 5.9)
    CreateLink = 28,
    /// `BPF_LINK_UPDATE` (for XDP, Linux 5.9)
    UpdateLink = 29,
    /// `BPF_LINK_DETACH` (for XDP, Linux 5.9)
    DetachLink = 34,
}

/// Passes a command to the kernel; returns its return value.
///
/// # Safety
///
/// `attributes` must be the command's part of `union bpf_attr`, from its start. Every address in it
/// must point to memory that the kernel may read or write as the command requires.
pub(super) unsafe fn bpf<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the caller's promise. The size is the size of the attributes, and the kernel takes
    // attributes beyond it as zero.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_int,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    match i32::try_from(returned) {
        Ok(returned) if returned >= 0 => Ok(returned),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The attributes for pinning and opening.
#[repr(C)]
struct Path64 {
    path: u64,
    descriptor: u32,
    flags: u32,
}

pub(super) fn pin(descriptor: u32, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = Path64 {
        path: path.as_ptr().addr() as u64,
        descriptor,
        flags: 0,
    };
    // SAFETY: the path is a C string that outlives the call.
    unsafe { bpf(Command::Pin, &mut attributes) }.map(drop)
}

pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = Path64 {
        path: path.as_ptr().addr() as u64,
        descriptor: 0,
        flags: 0,
    };
    // SAFETY: the path is a C string that outlives the call.
    let descriptor = unsafe { bpf(Command::Get, &mut attributes) }?;
    // SAFETY: the kernel has just opened it, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Runs a program once on the bytes of a value, in place of a frame; returns its return value.
pub(super) fn test_run<T: PlainBytes>(program: u32, value: &T) -> io::Result<u32> {
    #[repr(C)]
    struct Attributes {
        program: u32,
        returned: u32,
        size_in: u32,
        size_out: u32,
        data_in: u64,
        data_out: u64,
        repeat: u32,
        duration: u32,
    }
    let mut attributes = Attributes {
        program,
        returned: 0,
        size_in: u32::try_from(size_of::<T>()).unwrap_or(u32::MAX),
        size_out: 0,
        data_in: std::ptr::from_ref(value).expose_provenance() as u64,
        data_out: 0,
        repeat: 1,
        duration: 0,
    };
    // SAFETY: the kernel reads `size_of::<T>()` bytes, all of them defined, and writes only to the
    // attributes.
    unsafe { bpf(Command::TestRun, &mut attributes) }?;
    Ok(attributes.returned)
}

/// The first words of the kernel's `struct bpf_…_info` about a map, program or link.
pub(super) fn info<const WORDS: usize>(descriptor: u32) -> io::Result<[u32; WORDS]> {
    #[repr(C)]
    struct Attributes {
        descriptor: u32,
        length: u32,
        info: u64,
    }
    let mut words = [0_u32; WORDS];
    let mut attributes = Attributes {
        descriptor,
        length: u32::try_from(size_of_val(&words)).unwrap_or(0),
        info: words.as_mut_ptr().expose_provenance() as u64,
    };
    // SAFETY: the kernel writes at most `length` bytes, and the array has that many; any bytes are
    // a value.
    unsafe { bpf(Command::Info, &mut attributes) }?;
    Ok(words)
}
