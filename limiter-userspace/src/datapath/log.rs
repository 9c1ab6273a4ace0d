//! The program's log statements, handed to the daemon's log.

use std::io;

use aya_log::EbpfLogger;
use thiserror::Error;
use tokio::io::unix::AsyncFd;

use super::Attachment;

/// The log of the XDP program cannot be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// The object has no log, or not the one that is expected.
    #[error("the XDP program has no log: {0}")]
    Object(#[from] aya_log::Error),
    /// The log's descriptor cannot be waited for.
    #[error("cannot wait for the log of the XDP program: {0}")]
    Wait(#[from] io::Error),
}

/// Forwards what the attachment's program logs, for as long as the runtime lives. The
/// object must be the one with log statements.
pub fn forward(attachment: &mut Attachment) -> Result<(), LogError> {
    let logger = EbpfLogger::init(attachment.instance.ebpf_mut())?;
    // SAFETY: the logger keeps the ring buffer's descriptor open, and the same, until it is
    // dropped.
    let mut logger = unsafe { AsyncFd::register(logger) }.map_err(io::Error::from)?;
    tokio::spawn(async move {
        while let Ok(mut ready) = logger.readable_mut().await {
            ready.get_inner_mut().flush();
            ready.clear_ready();
        }
    });
    Ok(())
}
