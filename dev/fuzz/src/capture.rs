//! Any bytes as a capture: reading stops at the end or at an error, the same for any splitting of
//! the bytes.

use std::io::{self, Read};

use limiter_capture::Capture;

/// Reads a capture at once and in small pieces.
pub fn run(data: &[u8]) {
    let at_once = read(data);
    assert!(at_once.packets.len() <= data.len());
    assert_eq!(at_once, read(Pieces(data)));
}

/// The packets and the error of a read.
#[derive(Debug, Default, PartialEq, Eq)]
struct Content {
    /// Time, bytes, and length on the wire.
    packets: Vec<(i128, Vec<u8>, usize)>,
    /// The error's text.
    error: Option<String>,
}

fn read(reader: impl Read) -> Content {
    let mut content = Content::default();
    let mut capture = match Capture::new(reader) {
        Ok(capture) => capture,
        Err(error) => {
            content.error = Some(error.to_string());
            return content;
        }
    };
    loop {
        match capture.next_packet() {
            Ok(None) => return content,
            Ok(Some(packet)) => {
                assert!(packet.frame.data.len() <= packet.frame.length);
                content.packets.push((
                    packet.time_ns,
                    packet.frame.data.to_owned(),
                    packet.frame.length,
                ));
            }
            Err(error) => {
                content.error = Some(error.to_string());
                return content;
            }
        }
    }
}

/// A pipe with a slow writer.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(3);
        self.0.read(&mut buffer[..most])
    }
}
