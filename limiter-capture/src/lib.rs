//! Reads pcap and pcapng captures as a stream. Other supported link types are converted to Ethernet.
//!
//! Captures come from untrusted sources. Nothing here depends on a kernel, a policy or a machine, so the worst that a
//! hostile capture can do is end with an error.
//!
//! This is our own code, because the existing crates lack features that a replay needs:
//!
//! * pcap-parser 0.17 reads a big-endian interface's time offset as little-endian, refuses every time resolution that
//!   is a power of two, and does not know the obsolete packet block that enhanced packets replaced. It needs each whole
//!   block in its buffer, so common blocks (name resolution, secrets, statistics) are either refused or take as much
//!   memory as their length says. It replaces the operating system's error with its own, and gives up on a short first
//!   read from a pipe.
//! * pcap-file 2.0 reads every time as nanoseconds, ignoring the interface's resolution and offset, and also needs each
//!   whole block in its buffer.
//!
//! A replay needs little of both formats. Lengths are checked before they are used, memory is
//! bounded by one frame and one table of interfaces, and other blocks are skipped as a stream.

#![forbid(unsafe_code)]

mod byte_order;
mod compressed;
mod error;
mod frame;
mod header;
mod input;
mod link;
mod pcap;
mod pcapng;

use std::io::Read;

use self::input::Input;
pub use self::{compressed::decompressed, error::CaptureError, frame::CapturedFrame};

/// A captured frame and its time.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since the capture's epoch.
    pub time_ns: i128,
    /// The frame.
    pub frame: CapturedFrame<'a>,
}

/// A capture being read.
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
    /// The bytes of the last packet.
    data: Vec<u8>,
}

enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

impl<R: Read> Capture<R> {
    /// Reads far enough to determine the format.
    pub fn new(reader: R) -> Result<Self, CaptureError> {
        let mut input = Input::new(reader);
        let magic: [u8; 4] = match input.start("file header") {
            Ok(Some(magic)) => magic,
            Ok(None) => return Err(CaptureError::Empty),
            // Fewer than four bytes do not determine a format.
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

    /// Reads the next packet; `None` at the end.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let header = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.input, &mut self.data)?,
            Format::Pcapng(pcapng) => pcapng.next(&mut self.input, &mut self.data)?,
        };
        let Some(header) = header else {
            return Ok(None);
        };
        let length = (header.link).make_ethernet(&mut self.data, header.original_length);
        Ok(Some(Packet {
            time_ns: header.time_ns,
            frame: CapturedFrame {
                data: &self.data,
                length,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PCAP: [u8; 24] = [
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
    ];
    const SECTION: [u8; 28] = [
        0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255,
        255, 255, 255, 255, 255, 28, 0, 0, 0,
    ];
    const INTERFACE: [u8; 20] = [1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 20, 0, 0, 0];

    /// Counts the packets before the end or the error.
    fn count(bytes: &[u8]) -> (usize, Option<CaptureError>) {
        let mut packets = 0;
        let mut capture = match Capture::new(bytes) {
            Ok(capture) => capture,
            Err(error) => return (0, Some(error)),
        };
        loop {
            match capture.next_packet() {
                Ok(Some(packet)) => {
                    assert!(packet.frame.data.len() <= packet.frame.length);
                    packets += 1;
                }
                Ok(None) => return (packets, None),
                Err(error) => return (packets, Some(error)),
            }
        }
    }

    proptest! {
        /// Any bytes after a valid header are read or refused without a panic.
        #[test]
        fn no_bytes_are_too_wild(
            pcap: bool,
            blocks in prop::collection::vec((0u8..7, 0u8..40, prop::collection::vec(0u8..9, 0..48)), 0..6),
        ) {
            let mut bytes = if pcap { PCAP.to_vec() } else { [&SECTION[..], &INTERFACE].concat() };
            for (kind, length, body) in blocks {
                bytes.extend([kind, 0, 0, 0, length, 0, 0, 0]);
                bytes.extend(body);
                bytes.extend([length, 0, 0, 0]);
            }
            count(&bytes);
        }
    }

    #[test]
    fn a_simple_packet_has_the_time_of_the_packet_before() {
        // The interface captures 4 bytes of each packet; the packet has 6.
        let enhanced = [
            6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 0, 1,
            2, 3, 4, 36, 0, 0, 0,
        ];
        let simple = [3, 0, 0, 0, 20, 0, 0, 0, 6, 0, 0, 0, 5, 6, 7, 8, 20, 0, 0, 0];
        let bytes = [&SECTION[..], &INTERFACE, &enhanced, &simple].concat();
        let mut capture = Capture::new(&bytes[..]).unwrap();
        for data in [[1, 2, 3, 4], [5, 6, 7, 8]] {
            let packet = capture.next_packet().unwrap().unwrap();
            assert_eq!(packet.time_ns, 7_000);
            assert_eq!((packet.frame.data, packet.frame.length), (&data[..], 6));
        }
        assert!(capture.next_packet().unwrap().is_none());
    }

    #[test]
    fn packets_of_an_unknown_link_are_refused() {
        let mut other = INTERFACE;
        other[8] = 105;
        // An unsupported interface without packets is ignored.
        let bytes = [&SECTION[..], &INTERFACE, &other].concat();
        assert!(matches!(count(&bytes), (0, None)));
        let packet = [
            6, 0, 0, 0, 32, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            32, 0, 0, 0,
        ];
        let bytes = [&bytes[..], &packet].concat();
        assert!(matches!(
            count(&bytes),
            (0, Some(CaptureError::LinkType(105)))
        ));
        // A new section counts its interfaces anew.
        let bytes = [
            &SECTION[..],
            &INTERFACE,
            &INTERFACE,
            &SECTION,
            &INTERFACE,
            &packet,
        ]
        .concat();
        assert!(matches!(
            count(&bytes),
            (0, Some(CaptureError::Damaged(..)))
        ));
    }
}
