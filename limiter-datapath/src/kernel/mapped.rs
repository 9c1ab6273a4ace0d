//! Arrays of the kernel's, mapped into the daemon's memory.

use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd as _, AsRawFd as _, RawFd},
    slice,
};

use aya::{
    Pod,
    maps::{Array, IterableMap as _, MapData},
};
use limiter_common::sieve::{Entry, Shard, Word};
use memmap2::{MmapOptions, MmapRaw};

use super::DatapathError;
use crate::native::AtomicLine;

/// An element of an array that the kernel program uses at the same time.
///
/// # Safety
///
/// It is made of words that are only ever accessed atomically, any bits of which are a value, and
/// is as large as an element of the map: `Value`.
pub(super) unsafe trait Shared {
    /// The element as aya knows it.
    type Value: Pod;
}

// SAFETY: eight such words.
unsafe impl Shared for AtomicLine {
    type Value = [u64; 8];
}

// SAFETY: eight such words.
unsafe impl Shared for Entry {
    type Value = [u64; 8];
}

// SAFETY: two such words, and bytes that nobody accesses.
unsafe impl Shared for Shard {
    type Value = [u64; 8];
}

// SAFETY: one such word.
unsafe impl Shared for Word {
    type Value = u64;
}

/// An array that the kernel program uses at the same time. Unmapped when dropped.
pub(super) struct Mapped<T: Shared> {
    array: Array<MapData, T::Value>,
    memory: MmapRaw,
    elements: PhantomData<T>,
}

impl<T: Shared> Mapped<T> {
    /// Maps an array, which must be mappable, to read and to write.
    pub(super) fn new(array: Array<MapData, T::Value>) -> Result<Self, DatapathError> {
        Self::with(array, MmapOptions::map_raw)
    }

    /// The same to read alone: the kernel does not let this process write there.
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
        // Shared with the kernel.
        let memory = map(&options, array.map().fd().as_fd().as_raw_fd());
        Ok(Self {
            array,
            memory: memory.map_err(DatapathError::Mapping)?,
            elements: PhantomData,
        })
    }

    /// The map.
    pub(super) fn map(&self) -> &MapData {
        self.array.map()
    }

    /// Every element.
    pub(super) fn all(&self) -> &[T] {
        // SAFETY: as many bytes are mapped for as long as `self` is there, from the start of a
        // page on. Any bytes are an element. Whoever else writes there, this process's threads and
        // the kernel's programs, does so by atomic instructions on the same aligned words.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().cast(), self.count() as usize) }
    }

    /// The element of that index.
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.all().get(index as usize)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.array.len()
    }
}
