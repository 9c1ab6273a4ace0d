//! A verified program in the kernel, loaded by any process.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
};

use aya::{
    maps::{Array, Map, MapError},
    programs::{ProgramError, ProgramFd},
};
use limiter_common::attachment_facts::AttachmentFacts;

use super::{
    grace::wait_for_running_programs,
    pod::{InMap, PlainBytes},
    stages::Stages,
    syscall,
};

/// A program. The kernel keeps it and its maps for as long as a descriptor, link or pin holds it.
#[derive(Debug)]
pub(super) struct Program {
    descriptor: OwnedFd,
    id: u32,
    /// The stages that the program hands packets over to.
    stages: Option<Stages>,
    /// The map of its writable statics, if this process has loaded the program.
    statics: Option<Map>,
    /// The facts of the interface that were last written into the program.
    written: AttachmentFacts,
}

impl Program {
    /// Takes a loaded program without stages.
    pub(super) fn of(program: &ProgramFd) -> Result<Self, ProgramError> {
        let descriptor = program.as_fd().try_clone_to_owned()?;
        Ok(Self::new(descriptor, None)?)
    }

    pub(super) fn with_stages(mut self, stages: Stages) -> Self {
        self.stages = Some(stages);
        self
    }

    pub(super) fn with_statics(mut self, statics: Map) -> Self {
        self.statics = Some(statics);
        self
    }

    /// Writes the facts of the interface into the program, if this process has loaded it.
    pub(super) fn write_facts(&mut self, facts: AttachmentFacts) -> Result<(), MapError> {
        let Some(statics) = &mut self.statics else {
            return Ok(());
        };
        // Every change of any interface leads here, so skip writes without a change.
        if self.written != facts {
            Array::try_from(statics)?.set(0, InMap(facts), 0)?;
            self.written = facts;
        }
        Ok(())
    }

    /// Opens the program pinned at `path`, and its stages if any are pinned at `stages`.
    pub(super) fn open(path: &Path, stages: &Path) -> io::Result<Self> {
        let stages = if stages.try_exists()? {
            Some(Stages::open(stages)?)
        } else {
            None
        };
        Self::new(syscall::open(path)?, stages)
    }

    /// Opens the program without stages that is pinned at `path`.
    pub(super) fn open_alone(path: &Path) -> io::Result<Self> {
        Self::new(syscall::open(path)?, None)
    }

    fn new(descriptor: OwnedFd, stages: Option<Stages>) -> io::Result<Self> {
        // `struct bpf_prog_info`: type, id.
        let [_, id] = syscall::info(descriptor.as_raw_fd().cast_unsigned())?;
        Ok(Self {
            descriptor,
            id,
            stages,
            statics: None,
            written: AttachmentFacts::NONE,
        })
    }

    pub(super) fn pin(&self, path: &Path) -> io::Result<()> {
        syscall::pin(self.descriptor(), path)
    }

    pub(super) const fn stages(&self) -> Option<&Stages> {
        self.stages.as_ref()
    }

    /// The program's id, unique until the machine restarts.
    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    /// Runs the program once on the bytes of a value, attached or not; returns its return value.
    pub(super) fn run_on<T: PlainBytes>(&self, value: &T) -> io::Result<u32> {
        syscall::test_run(self.descriptor(), value)
    }

    pub(super) fn descriptor(&self) -> u32 {
        self.descriptor.as_raw_fd().cast_unsigned()
    }

    /// Releases detached programs, with one wait for all of them: a packet may still be in one, on
    /// its way to a stage.
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
        // If memory for the map is short, there is no wait; a packet on its way to a stage is then
        // dropped and counted.
        let _ = wait_for_running_programs();
    }
    stages.for_each(drop);
}
