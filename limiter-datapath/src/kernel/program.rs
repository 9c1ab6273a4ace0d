//! A verified program in the kernel, loaded by any process.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
};

use aya::{
    maps::MapError,
    programs::{ProgramError, ProgramFd},
};
use limiter_common::attachment_facts::AttachmentFacts;

use super::{
    DatapathError,
    grace::wait_for_running_programs,
    interface_facts::{FactSlot, STATICS},
    map,
    pod::PlainBytes,
    stages::Stages,
    syscall,
};

/// A program, for one of its interfaces. The kernel keeps it and its maps for as long as a descriptor, link or pin holds it.
#[derive(Debug)]
pub(super) struct Program {
    descriptor: OwnedFd,
    id: u32,
    /// The stages that the program hands packets over to.
    stages: Option<Stages>,
    /// The facts about the interface, if this process has loaded the program.
    facts: Option<FactSlot>,
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

    pub(super) fn with_facts(mut self, facts: FactSlot) -> Self {
        self.facts = Some(facts);
        self
    }

    /// The same program for one more interface, with the kernel's `index` and the number `interface`; `None`:
    /// another process has loaded the program, or the index has no free slot in it.
    pub(super) fn share(&self, index: u32, interface: u32) -> Result<Option<Self>, DatapathError> {
        let Some(facts) = &self.facts else {
            return Ok(None);
        };
        let Some(facts) = facts
            .another(index, interface)
            .map_err(map::error(STATICS))?
        else {
            return Ok(None);
        };
        let stages = self.stages.as_ref().map(Stages::try_clone).transpose();
        Ok(Some(Self {
            descriptor: self.descriptor.try_clone().map_err(DatapathError::Stages)?,
            id: self.id,
            stages: stages.map_err(DatapathError::Stages)?,
            facts: Some(facts),
        }))
    }

    /// Writes the facts about the interface into the program, if this process has loaded it.
    pub(super) fn write_facts(&self, facts: AttachmentFacts) -> Result<(), MapError> {
        self.facts.as_ref().map_or(Ok(()), |slot| slot.write(facts))
    }

    /// Follows the interface to another index.
    pub(super) fn follow(&mut self, index: u32) -> Result<(), MapError> {
        self.facts
            .as_mut()
            .map_or(Ok(()), |slot| slot.follow(index))
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
            facts: None,
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
