//! A frame from a capture, which may have only its beginning.

use limiter_common::packet::Frame;

/// A frame with its length on the wire and the bytes that were captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame<'a> {
    /// The captured bytes, from the Ethernet header on.
    pub data: &'a [u8],
    /// Its length on the wire; at least as long as `data`.
    pub length: usize,
}

impl CapturedFrame<'_> {
    /// Whether it is truncated in the capture.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.data.len() < self.length
    }
}

impl Frame for CapturedFrame<'_> {
    fn length(&self) -> usize {
        self.length
    }

    /// Fails for bytes missing in the capture, so that no header is invented.
    fn load<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.data.get(offset..)?.first_chunk().copied()
    }

    fn without_first(&self, length: usize) -> Self {
        Self {
            data: &self.data[length..],
            length: self.length - length,
        }
    }
}
