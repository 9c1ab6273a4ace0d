//! A frame as a capture has it: perhaps only its beginning.

use limiter_common::packet::Frame;

/// A frame whose length is that on the wire, and whose bytes are those that were captured.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame<'a> {
    /// What was captured of it, from the Ethernet header on.
    pub data: &'a [u8],
    /// Its length on the wire; at least as long as `data`.
    pub length: usize,
}

impl CapturedFrame<'_> {
    /// Whether the capture lacks its end.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.data.len() < self.length
    }
}

impl Frame for CapturedFrame<'_> {
    fn length(&self) -> usize {
        self.length
    }

    /// What was not captured cannot be loaded: a header that is not there is not made up.
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
