//! The reasons why a capture cannot be read any further.

use std::io;

use thiserror::Error;

/// A capture cannot be read any further; everything read before is valid.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The operating system failed to read it.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// It is empty.
    #[error("not a capture: the file is empty")]
    Empty,
    /// It does not start like a capture.
    #[error("not a capture: neither pcap nor pcapng")]
    Foreign,
    /// Its frames are of an unsupported link type.
    #[error(
        "the capture's link type is {0}: only Ethernet (1), cooked (113, 276) and raw IP (101, 228, \
         229) can be read"
    )]
    LinkType(u32),
    /// It ends in the middle of a structure.
    #[error("the capture is cut short: it ends at byte {0}, inside a {1}")]
    CutShort(u64, &'static str),
    /// Its structure is invalid.
    #[error("the capture is damaged before byte {0}: {1}")]
    Damaged(u64, &'static str),
}
