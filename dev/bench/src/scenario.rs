//! The properties of a flood.

use std::{fmt, net::IpAddr};

use anyhow::Result;
use bench_common::Layout;
use serde::{Serialize, Serializer};
use testbed::Frame;

/// The destination of the flood.
pub(crate) const SERVER_V4: [u8; 4] = [198, 18, 0, 1];
pub(crate) const SERVER_V6: &str = "fd88::1";

/// The application's port.
pub(crate) const PORT: u16 = 5353;

/// The smallest frame of the flood, in bytes.
pub(crate) const SMALL: usize = 64;

/// The largest frame, in bytes, without jumbo frames.
pub(crate) const LARGE: usize = 1500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Scenario {
    /// The layout of its sources.
    #[serde(serialize_with = "by_name")]
    pub(crate) layout: Layout,
    /// The number of sources, as a power of two.
    pub(crate) sources_log2: u32,
    /// The length of its frames in bytes, from the Ethernet header on.
    pub(crate) frame_length: usize,
    /// The number of CPUs that generate and receive it.
    pub(crate) cpus: usize,
}

impl Scenario {
    /// Makes a flood of small frames, on one CPU.
    pub(crate) const fn new(layout: Layout, sources_log2: u32) -> Self {
        Self {
            layout,
            sources_log2,
            frame_length: SMALL,
            cpus: 1,
        }
    }

    /// Returns the flood on this many CPUs.
    pub(crate) const fn on_cpus(self, cpus: usize) -> Self {
        Self { cpus, ..self }
    }

    /// Returns the flood with frames of this length, in bytes.
    pub(crate) const fn with_frames(self, frame_length: usize) -> Self {
        Self {
            frame_length,
            ..self
        }
    }

    /// Returns the number of sources.
    pub(crate) const fn sources(&self) -> u64 {
        1 << self.sources_log2
    }

    /// Returns the number of packets until a contender is in its steady state: it has seen nearly
    /// every source, or its smaller store has been filled more than once.
    pub(crate) fn warm_up(&self, room: Option<u32>) -> u64 {
        let known = room.map_or(self.sources(), |room| self.sources().min(room.into()));
        (2 * known).max(1 << 17)
    }

    /// Returns the number of sources in readable form.
    pub(crate) fn sources_name(&self) -> String {
        match self.sources_log2 {
            power @ 20.. => format!("{} M", 1 << (power - 20)),
            power @ 10.. => format!("{} k", 1 << (power - 10)),
            power => (1 << power).to_string(),
        }
    }

    /// Builds a frame of the flood, with any source.
    pub(crate) fn frame(&self) -> Result<Vec<u8>> {
        const WITHOUT_PAYLOAD_V4: usize = 14 + 20 + 8;
        const WITHOUT_PAYLOAD_V6: usize = 14 + 40 + 8;
        let (source, destination, headers): (IpAddr, IpAddr, _) = match self.layout {
            Layout::V4 => ([16, 0, 0, 0].into(), SERVER_V4.into(), WITHOUT_PAYLOAD_V4),
            Layout::V6Near | Layout::V6Far => {
                ("2a00::".parse()?, SERVER_V6.parse()?, WITHOUT_PAYLOAD_V6)
            }
        };
        let payload = vec![0; self.frame_length - headers];
        let mut frame = Frame::new(source, destination).udp(9, PORT, &payload)?;
        // No UDP checksum, which would depend on the source.
        frame[headers - 2..headers].fill(0);
        Ok(frame)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            frame_length, cpus, ..
        } = self;
        let plural = if self.sources() == 1 { "" } else { "s" };
        write!(
            f,
            "{}, {} source{plural}",
            layout_name(self.layout),
            self.sources_name()
        )?;
        if *frame_length != SMALL {
            write!(f, ", {frame_length} bytes")?;
        }
        if *cpus != 1 {
            write!(f, ", {cpus} CPUs")?;
        }
        Ok(())
    }
}

/// Returns the layout's name in readable form.
pub(crate) const fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::V4 => "IPv4",
        Layout::V6Near => "IPv6 in one /64",
        Layout::V6Far => "IPv6 over /48s",
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
fn by_name<S: Serializer>(layout: &Layout, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(layout_name(*layout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_their_length() {
        for layout in [Layout::V4, Layout::V6Near, Layout::V6Far] {
            for length in [SMALL, LARGE] {
                let scenario = Scenario::new(layout, 0).with_frames(length);
                assert_eq!(scenario.frame().unwrap().len(), length, "{scenario}");
            }
        }
    }

    #[test]
    fn names_tell_what_is_special() {
        let names =
            [0, 10, 16, 20, 24].map(|power| Scenario::new(Layout::V4, power).sources_name());
        assert_eq!(names, ["1", "1 k", "64 k", "1 M", "16 M"]);
        let scenario = Scenario::new(Layout::V6Far, 20);
        assert_eq!(scenario.to_string(), "IPv6 over /48s, 1 M sources");
        let scenario = Scenario::new(Layout::V4, 0).with_frames(LARGE).on_cpus(2);
        assert_eq!(scenario.to_string(), "IPv4, 1 source, 1500 bytes, 2 CPUs");
    }
}
