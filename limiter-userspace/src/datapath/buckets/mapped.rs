//! The lines of the kernel's table of buckets, mapped into the daemon's memory.

use std::{
    os::fd::{AsFd as _, AsRawFd as _},
    slice,
};

use aya::maps::{Array, IterableMap as _, MapData};
use limiter_common::table::WAYS;
use memmap2::{MmapOptions, MmapRaw};

use super::super::DatapathError;
use crate::native::AtomicLine;

/// Lines that the kernel program uses at the same time. Unmapped when dropped.
pub(super) struct MappedLines {
    array: Array<MapData, [u64; 2 * WAYS]>,
    memory: MmapRaw,
}

impl MappedLines {
    /// Maps an array of lines, which must be mappable.
    pub(super) fn new(array: Array<MapData, [u64; 2 * WAYS]>) -> Result<Self, DatapathError> {
        let memory = MmapOptions::new()
            .len(array.len() as usize * size_of::<AtomicLine>())
            // Shared, to read and to write.
            .map_raw(array.map().fd().as_fd().as_raw_fd())
            .map_err(DatapathError::Mapping)?;
        Ok(Self { array, memory })
    }

    /// The map.
    pub(super) fn map(&self) -> &MapData {
        self.array.map()
    }

    /// Every line.
    pub(super) fn all(&self) -> &[AtomicLine] {
        // SAFETY: as many bytes are mapped for as long as `self` is there, from the start of a
        // page on. Any bytes are a line. Whoever else writes there, this process's threads and
        // the kernel's programs, does so by atomic instructions on the same aligned words.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().cast(), self.count() as usize) }
    }

    /// The line of that index.
    pub(super) fn get(&self, index: u32) -> Option<&AtomicLine> {
        self.all().get(index as usize)
    }

    /// How many there are: a power of two.
    pub(super) fn count(&self) -> u32 {
        self.array.len()
    }
}
