//! Why a capture cannot be read any further.

use std::io;

use thiserror::Error;

/// What was read before is good.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The operating system did not give it.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// There is nothing in it.
    #[error("not a capture: the file is empty")]
    Empty,
    /// It starts like no capture.
    #[error("not a capture: neither pcap nor pcapng")]
    Foreign,
    /// Its frames are not Ethernet's.
    #[error("the capture's link type is {0}: only Ethernet (1) can be replayed")]
    LinkType(u32),
    /// It ends in the middle of something.
    #[error("the capture is cut short: it ends at byte {0}, inside a {1}")]
    CutShort(u64, &'static str),
    /// It contradicts itself.
    #[error("the capture is damaged before byte {0}: {1}")]
    Damaged(u64, &'static str),
}
