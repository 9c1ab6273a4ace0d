//! Kernel arrays, mapped into the daemon's memory.

use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd as _, AsRawFd as _, RawFd},
    slice,
};

use aya::{
    Pod,
    maps::{Array, IterableMap as _, MapData, MapError},
};
use limiter_common::{
    cached_names::NameLine,
    sieve::{Entry, Shard, Word},
    table::AtomicLine,
};
use memmap2::{MmapOptions, MmapRaw};

use super::{DatapathError, batch};

/// An element of an array that the kernel program uses at the same time.
///
/// # Safety
///
/// The type consists of words that are only accessed atomically, every bit pattern is valid, and it
/// is as large as the map's element, `Value`.
pub(super) unsafe trait MapElement {
    /// The element as aya sees it.
    type Value: Pod;
}

// SAFETY: eight such words.
unsafe impl MapElement for AtomicLine {
    type Value = [u64; 8];
}

// SAFETY: eight such words.
unsafe impl MapElement for Entry {
    type Value = [u64; 8];
}

// SAFETY: two such words, and bytes that are never accessed.
unsafe impl MapElement for Shard {
    type Value = [u64; 8];
}

// SAFETY: eight such words.
unsafe impl MapElement for NameLine {
    type Value = [u64; 8];
}

// SAFETY: one such word.
unsafe impl MapElement for Word {
    type Value = u64;
}

/// An array that the kernel program uses at the same time. Unmapped when dropped.
pub(super) struct MappedArray<T: MapElement> {
    array: Array<MapData, T::Value>,
    memory: MmapRaw,
    elements: PhantomData<T>,
}

impl<T: MapElement> MappedArray<T> {
    /// Maps a mappable array for reading and writing.
    pub(super) fn new(array: Array<MapData, T::Value>) -> Result<Self, DatapathError> {
        Self::with(array, MmapOptions::map_raw)
    }

    /// Maps an array for reading only: the kernel refuses writes by this process.
    pub(super) fn read_only(array: Array<MapData, T::Value>) -> Result<Self, DatapathError> {
        Self::with(array, MmapOptions::map_raw_read_only)
    }

    fn with(
        array: Array<MapData, T::Value>,
        map: impl FnOnce(&MmapOptions, RawFd) -> io::Result<MmapRaw>,
    ) -> Result<Self, DatapathError> {
        const { assert!(size_of::<T>() == size_of::<T::Value>(), "as in the map") };
        let mut options = MmapOptions::new();
        options.len(array.len() as usize * size_of::<T>());
        // The memory is shared with the kernel.
        let memory = map(&options, array.map().fd().as_fd().as_raw_fd());
        Ok(Self {
            array,
            memory: memory.map_err(DatapathError::Mapping)?,
            elements: PhantomData,
        })
    }

    pub(super) fn map(&self) -> &MapData {
        self.array.map()
    }

    /// Writes elements, starting with the first, to a map that no program uses yet.
    pub(super) fn write(&self, values: &[T::Value]) -> Result<(), MapError> {
        let indices: Vec<u32> = (0..self.count()).collect();
        batch::update(&self.array, &indices, values)
    }

    pub(super) fn all(&self) -> &[T] {
        // SAFETY: that many bytes are mapped, page-aligned, for as long as `self` lives. Every bit
        // pattern is a valid element. All other writers, this process's threads and the kernel's
        // programs, use atomic instructions on the same aligned words.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().cast(), self.count() as usize) }
    }

    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.all().get(index as usize)
    }

    pub(super) fn count(&self) -> u32 {
        self.array.len()
    }
}
