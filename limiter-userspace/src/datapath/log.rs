//! The program's log statements, handed to the daemon's log.

use aya_log::EbpfLogger;
use tokio::io::unix::AsyncFd;

use super::Attachment;

/// Forwards what the attachment's program logs, for as long as the runtime lives. The
/// object must be the one with log statements.
pub fn forward(attachment: &mut Attachment) -> Result<(), String> {
    let logger =
        EbpfLogger::init(attachment.instance.ebpf_mut()).map_err(|error| error.to_string())?;
    // SAFETY: the logger keeps the ring buffer's descriptor open, and the same, until it is
    // dropped.
    let mut logger = unsafe { AsyncFd::register(logger) }.map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        while let Ok(mut ready) = logger.readable_mut().await {
            ready.get_inner_mut().flush();
            ready.clear_ready();
        }
    });
    Ok(())
}
