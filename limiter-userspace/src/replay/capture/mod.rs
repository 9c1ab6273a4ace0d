//! Captures: pcap and pcapng, of Ethernet, as a stream.
//!
//! The crates that read these formats were weighed: they lose the operating system's error,
//! take a short read from a pipe for a foreign file, or read a big-endian section's options
//! as little-endian. Of both formats only little is needed here.

mod byte_order;
mod error;
mod input;
mod pcap;
mod pcapng;

use std::io::Read;

pub use self::error::CaptureError;
use self::input::Input;
use super::CapturedFrame;

/// More than this is in no frame: libpcap's bound for Ethernet, and no allocation to fear.
const MAX_CAPTURED: u32 = 262_144;

/// `LINKTYPE_ETHERNET` in the registry of the formats' makers.
const ETHERNET: u32 = 1;

/// One captured frame and when it was captured, in nanoseconds since the capture's epoch.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When.
    pub time_ns: i128,
    /// The frame.
    pub frame: CapturedFrame<'a>,
}

/// Where a packet's bytes were put, and what else its header tells.
struct Header {
    time_ns: i128,
    original_length: u32,
}

/// A capture that is being read.
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
    /// The bytes of the packet that was read last.
    data: Vec<u8>,
}

enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

impl<R: Read> Capture<R> {
    /// Reads as far as it takes to tell the format.
    pub fn new(reader: R) -> Result<Self, CaptureError> {
        let mut input = Input::new(reader);
        let magic: [u8; 4] = match input.start("file header") {
            Ok(Some(magic)) => magic,
            Ok(None) => return Err(CaptureError::Empty),
            // Of fewer than four bytes nothing can be said.
            Err(CaptureError::CutShort(..)) => return Err(CaptureError::Foreign),
            Err(error) => return Err(error),
        };
        let format = if magic == pcapng::SECTION_HEADER {
            Format::Pcapng(pcapng::Pcapng::open(&mut input)?)
        } else {
            Format::Pcap(pcap::Pcap::open(magic, &mut input)?)
        };
        Ok(Self {
            input,
            format,
            data: Vec::new(),
        })
    }

    /// The next packet; `None` at the end.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let header = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.input, &mut self.data)?,
            Format::Pcapng(pcapng) => pcapng.next(&mut self.input, &mut self.data)?,
        };
        Ok(header.map(|header| Packet {
            time_ns: header.time_ns,
            frame: CapturedFrame {
                data: &self.data,
                // Some tools write 0 for a length they do not know.
                length: self.data.len().max(header.original_length as usize),
            },
        }))
    }
}
