//! A verified program in the kernel, whoever loaded it.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
};

use aya::programs::{ProgramError, Xdp};

use super::{grace::wait_for_running_programs, pod::PlainBytes, stages::Stages, syscall};

/// A program; the kernel keeps it, and the maps it uses, for as long as something holds it.
#[derive(Debug)]
pub(super) struct Program {
    descriptor: OwnedFd,
    id: u32,
    /// The stages that it hands packets over to.
    stages: Option<Stages>,
}

impl Program {
    /// A program that was loaded, and that hands nothing over.
    pub(super) fn of(program: &Xdp) -> Result<Self, ProgramError> {
        let descriptor = program.fd()?.as_fd().try_clone_to_owned()?;
        Ok(Self::new(descriptor, None)?)
    }

    /// The same program, which hands packets over to stages.
    pub(super) fn with_stages(mut self, stages: Stages) -> Self {
        self.stages = Some(stages);
        self
    }

    /// Opens the program that is pinned under a name, and its stages, which are pinned under the
    /// other name if there are any.
    pub(super) fn open(path: &Path, stages: &Path) -> io::Result<Self> {
        let stages = if stages.try_exists()? {
            Some(Stages::open(stages)?)
        } else {
            None
        };
        Self::new(syscall::open(path)?, stages)
    }

    fn new(descriptor: OwnedFd, stages: Option<Stages>) -> io::Result<Self> {
        // `struct bpf_prog_info`: its type, its id.
        let [_, id] = syscall::info(descriptor.as_raw_fd().cast_unsigned())?;
        Ok(Self {
            descriptor,
            id,
            stages,
        })
    }

    /// Pins it under a name.
    pub(super) fn pin(&self, path: &Path) -> io::Result<()> {
        syscall::pin(self.descriptor(), path)
    }

    /// The stages that it hands packets over to.
    pub(super) const fn stages(&self) -> Option<&Stages> {
        self.stages.as_ref()
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

    /// Lets go of programs that are attached no more, after one wait for all of them: a packet may
    /// still be in one, on its way to a stage.
    pub(super) fn retire(programs: impl IntoIterator<Item = Self>) {
        let mut programs: Vec<_> = programs.into_iter().collect();
        let stages: Vec<_> = programs
            .iter_mut()
            .filter_map(|program| program.stages.take())
            .collect();
        release(stages);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        release(self.stages.take());
    }
}

fn release(stages: impl IntoIterator<Item = Stages>) {
    let mut stages = stages.into_iter().peekable();
    if stages.peek().is_some() {
        // Without memory for a map there is no waiting: then a packet that is on its way is dropped,
        // and counted.
        let _ = wait_for_running_programs();
    }
    stages.for_each(drop);
}
