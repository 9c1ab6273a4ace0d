//! The capture of answers: pcap, with times in nanoseconds.
//!
//! The format takes 24 bytes for the file and 16 for a packet, so this is our own code. The crates that write
//! it cost more:
//!
//! * pcap-file 2.0 brings a second thiserror and a third syn, which `deny.toml` refuses; 3.0, which is
//!   not released yet, brings that syn, too.
//! * pcap-parser 0.17 brings nom, cookie-factory and futures with its executor, and copies each packet.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
};

use anyhow::anyhow;

/// libpcap's magic number for times in nanoseconds, its version, and Ethernet.
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
const ETHERNET: u32 = 1;

/// The longest packet that a reader must expect.
const SNAPSHOT_LENGTH: u32 = 262_144;

const NS_PER_SECOND: i128 = 1_000_000_000;

pub(super) struct AnswersFile(BufWriter<File>);

impl AnswersFile {
    pub(super) fn begin(file: File) -> anyhow::Result<Self> {
        let mut file = BufWriter::new(file);
        let [major, minor] = VERSION;
        let header = [
            &NANOSECONDS.to_le_bytes()[..],
            &major.to_le_bytes(),
            &minor.to_le_bytes(),
            // The time zone and the accuracy, which readers ignore.
            &[0; 8],
            &SNAPSHOT_LENGTH.to_le_bytes(),
            &ETHERNET.to_le_bytes(),
        ];
        file.write_all(&header.concat())
            .map_err(|error| failed(&error))?;
        Ok(Self(file))
    }

    /// Writes a frame, sent `time_ns` after 1970. Times outside the format's 136 years are clamped.
    pub(super) fn write(&mut self, time_ns: i128, frame: &[u8]) -> anyhow::Result<()> {
        let (seconds, fraction) = (
            time_ns.div_euclid(NS_PER_SECOND),
            time_ns.rem_euclid(NS_PER_SECOND),
        );
        let word = |number: i128| {
            let number = u32::try_from(number.max(0)).unwrap_or(u32::MAX);
            number.to_le_bytes()
        };
        // An answer is hardly longer than a captured frame.
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes();
        let header = [word(seconds), word(fraction), length, length];
        self.0
            .write_all(&header.concat())
            .map_err(|error| failed(&error))?;
        self.0.write_all(frame).map_err(|error| failed(&error))
    }

    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.0.flush().map_err(|error| failed(&error))
    }
}

fn failed(error: &io::Error) -> anyhow::Error {
    anyhow!("cannot write the capture of answers: {error}")
}
