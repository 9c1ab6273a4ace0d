//! Draws the sources of a flood.

use crate::{
    frame::Frame,
    layout::{Layout, Source},
};

/// The sources to draw from, and the progress of drawing, for one CPU.
///
/// Userspace writes it as four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Draw {
    /// The random generator's state, which begins with the seed.
    pub state: u64,
    /// One less than the number of sources, a power of two.
    pub mask: u64,
    /// A [`Layout`]; with 0, no source is drawn and the frame stays as it is.
    pub layout: u64,
    /// A [`Sink`].
    pub sink: u64,
}

/// Which passed packets are dropped at once, so that the network stack is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Sink {
    /// None.
    Nothing = 0,
    /// All but the clients' packets.
    Flood = 1,
    /// All.
    Everything = 2,
}

impl Draw {
    /// Returns the map's words.
    #[must_use]
    pub const fn words(&self) -> [u64; 4] {
        [self.state, self.mask, self.layout, self.sink]
    }

    /// Returns whether to drop a frame even if it may pass.
    #[must_use]
    #[inline(always)]
    pub fn sinks(&self, frame: &Frame) -> bool {
        const FLOOD: u64 = Sink::Flood as u64;
        const EVERYTHING: u64 = Sink::Everything as u64;
        match self.sink {
            EVERYTHING => true,
            FLOOD => !frame.is_of_client(),
            _ => false,
        }
    }

    /// Returns the next source, or `None` to draw nothing.
    #[inline(always)]
    pub fn next_source(&mut self) -> Option<Source> {
        let layout = Layout::of_number(self.layout)?;
        // Knuth's MMIX generator: its upper bits are the most random ones.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some(layout.source((self.state >> 32) & self.mask))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn draws_every_source_and_no_other() {
        let mut draw = Draw {
            state: 1,
            mask: 1023,
            layout: Layout::V4 as u64,
            sink: 0,
        };
        let drawn: HashSet<_> = (0..20_000).filter_map(|_| draw.next_source()).collect();
        let all: HashSet<_> = (0..1024).map(|index| Layout::V4.source(index)).collect();
        assert_eq!(drawn, all);
    }

    #[test]
    fn draws_nothing_without_a_layout() {
        let mut draw = Draw {
            state: 1,
            mask: 0,
            layout: 0,
            sink: 0,
        };
        assert_eq!(draw.next_source(), None);
        assert_eq!(draw.state, 1);
    }
}
