//! The source of a packet's bytes.

use super::Link;

/// The bytes of a frame.
pub trait Frame: Sized {
    /// The header at the frame's start.
    #[inline(always)]
    fn link(&self) -> Link {
        Link::Ethernet
    }

    /// The frame's length in bytes, with all headers.
    fn length(&self) -> usize;

    /// Returns `N` bytes from `offset` on, or `None` if the frame is too short.
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// Returns the frame without its first `length` bytes, which must exist.
    ///
    /// The implementation must hide `length` from the kernel's verifier, which would walk all later
    /// code once for each value.
    #[must_use]
    fn without_first(&self, length: usize) -> Self;
}

/// An Ethernet frame in memory.
#[cfg(not(target_arch = "bpf"))]
#[derive(Clone, Copy, Debug)]
pub struct BytesFrame<'a>(pub &'a [u8]);

#[cfg(not(target_arch = "bpf"))]
impl Frame for BytesFrame<'_> {
    fn length(&self) -> usize {
        self.0.len()
    }

    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..)?.first_chunk().copied()
    }

    fn without_first(&self, length: usize) -> Self {
        Self(&self.0[length..])
    }
}
