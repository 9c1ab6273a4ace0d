//! A verified program in the kernel, whoever loaded it.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
};

use aya::programs::{ProgramError, Xdp};

use super::{pod::PlainBytes, syscall};

/// A program; the kernel keeps it, and the maps it uses, for as long as something holds it.
#[derive(Debug)]
pub(super) struct Program {
    descriptor: OwnedFd,
    id: u32,
}

impl Program {
    /// One that was loaded.
    pub(super) fn of(program: &Xdp) -> Result<Self, ProgramError> {
        let descriptor = program.fd()?.as_fd().try_clone_to_owned()?;
        Ok(Self::new(descriptor)?)
    }

    /// Opens the program that is pinned under a name.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::new(syscall::open(path)?)
    }

    fn new(descriptor: OwnedFd) -> io::Result<Self> {
        // `struct bpf_prog_info`: its type, its id.
        let [_, id] = syscall::info(descriptor.as_raw_fd().cast_unsigned())?;
        Ok(Self { descriptor, id })
    }

    /// Pins it under a name.
    pub(super) fn pin(&self, path: &Path) -> io::Result<()> {
        syscall::pin(self.descriptor(), path)
    }

    /// Its number, which no other program gets while the machine runs.
    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    /// Runs it once on the bytes of a value, attached or not; returns what it returns.
    pub(super) fn run_on<T: PlainBytes>(&self, value: &T) -> io::Result<u32> {
        syscall::test_run(self.descriptor(), value)
    }

    /// Its descriptor, as the kernel is told it.
    pub(super) fn descriptor(&self) -> u32 {
        self.descriptor.as_raw_fd().cast_unsigned()
    }
}
