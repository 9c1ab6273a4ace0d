//! The programs of the pipeline: the entry, which is attached, and the stages, which it enters by
//! tail calls through an array of programs.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::Path,
};

use aya::{
    Ebpf,
    maps::{Map, ProgramArray},
    programs::Xdp,
};
use limiter_common::{decide::Stage, policy::Features};

use super::{DatapathError, preflight, syscall, verify::verify};

/// The name of the entry in the object; stage programs are named after it and their stage.
const ENTRY: &str = "limiter";

const OF_ONE_PIECE: &str = "_linear";

/// The kind of frames that a program accepts. The kernel does not mix programs of both kinds in one
/// array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frames {
    /// Frames in any number of pieces.
    Pieces,
    /// Frames of one piece, the only kind before Linux 5.18.
    OnePiece,
}

impl Frames {
    pub(super) const ALL: [Self; 2] = [Self::Pieces, Self::OnePiece];

    /// The kind that this kernel supports.
    pub(super) fn of_this_kernel() -> Self {
        if preflight::has_frags() {
            Self::Pieces
        } else {
            Self::OnePiece
        }
    }

    pub(super) const fn entry(self) -> &'static str {
        match self {
            Self::Pieces => ENTRY,
            Self::OnePiece => "limiter_linear",
        }
    }

    pub(super) fn program(self, stage: Stage) -> String {
        let suffix = match self {
            Self::Pieces => "",
            Self::OnePiece => OF_ONE_PIECE,
        };
        format!("{ENTRY}_{}{suffix}", stage.name())
    }

    const fn array(self) -> &'static str {
        match self {
            Self::Pieces => "STAGES",
            Self::OnePiece => "STAGES_LINEAR",
        }
    }
}

/// Whether a program of that name is an entry of the pipeline.
pub(super) fn is_entry(name: &str) -> bool {
    Frames::ALL.iter().any(|frames| frames.entry() == name)
}

/// Verifies the stages that a policy with these features uses, and puts them into the array of the
/// object's entry.
pub(super) fn load(
    ebpf: &mut Ebpf,
    frames: Frames,
    features: &Features,
) -> Result<(), DatapathError> {
    for stage in Stage::ALL.iter().filter(|stage| stage.is_used(features)) {
        let program = program(ebpf, &frames.program(*stage))?;
        verify(|| program.load()).map_err(DatapathError::Verify)?;
        let descriptor = program.fd().map_err(DatapathError::Verify)?;
        let descriptor = descriptor.try_clone().map_err(DatapathError::Stages)?;
        let map = frames.array();
        let error = |source| DatapathError::Map { map, source };
        let array = ebpf.map_mut(map).ok_or(DatapathError::NoMap(map))?;
        let mut array = ProgramArray::try_from(array).map_err(error)?;
        array.set(*stage as u32, &descriptor, 0).map_err(error)?;
    }
    Ok(())
}

pub(super) fn program<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut Xdp, DatapathError> {
    ebpf.program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| DatapathError::NoProgram(name.to_owned()))
}

/// The array of an entry's stages. The kernel empties the array once no process has it open and no
/// pin holds it. From then on the entry drops every packet that it would hand over.
#[derive(Debug)]
pub(super) struct Stages(OwnedFd);

impl Stages {
    pub(super) fn of(ebpf: &Ebpf, frames: Frames) -> Result<Self, DatapathError> {
        let map = frames.array();
        match ebpf.map(map) {
            Some(Map::ProgramArray(data)) => {
                let descriptor = data.fd().as_fd().try_clone_to_owned();
                Ok(Self(descriptor.map_err(DatapathError::Stages)?))
            }
            _ => Err(DatapathError::NoMap(map)),
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        syscall::open(path).map(Self)
    }

    pub(super) fn pin(&self, path: &Path) -> io::Result<()> {
        syscall::pin(self.0.as_raw_fd().cast_unsigned(), path)
    }
}
