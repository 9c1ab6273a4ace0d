//! Writes to stderr without blocking. A pipe without an active reader fills up, and a write to it then blocks
//! forever. The daemon instead discards lines for which there is no room, and logs how many.

use std::{
    convert::Infallible,
    io::{self, Write},
    os::fd::AsFd,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use limiter_policy::text::visible_json;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::sleep;
use tracing::warn;

/// The room in a pipe that poll(2) reports as writable, in bytes: `PIPE_BUF` on Linux.
const PIECE: usize = 4096;

/// How often to check whether lines were lost.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The lost lines; a writer holds the lock.
static LOST: Mutex<LostLines> = Mutex::new(LostLines {
    lines: 0,
    is_torn: false,
});

struct LostLines {
    /// The number of lost lines since the process began.
    lines: u64,
    /// Whether the last line was written without its end.
    is_torn: bool,
}

/// Writes a line at once or not at all; only lines of several kilobytes may be torn.
pub(super) struct Line {
    /// Whether the line is a JSON object. Its texts may quote outside text, so they are written without control
    /// characters.
    pub(super) is_json: bool,
}

impl Write for Line {
    /// Reports the whole line as written, even if it is lost.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let shown = match str::from_utf8(line) {
            Ok(json) if self.is_json => visible_json(json).into_bytes(),
            _ => line.to_vec(),
        };
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        let written = if lost.is_torn {
            write(b"\n").map_err(|_| 0).and_then(|()| write(&shown))
        } else {
            write(&shown)
        };
        lost.is_torn = match &written {
            Ok(()) => false,
            Err(written) => lost.is_torn || *written > 0,
        };
        lost.lines += u64::from(written.is_err());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes as long as that does not block; on failure returns how many bytes were written.
fn write(bytes: &[u8]) -> Result<(), usize> {
    let mut stderr = io::stderr().lock();
    let mut rest = bytes;
    while !rest.is_empty() {
        if !has_room(&stderr) {
            return Err(bytes.len() - rest.len());
        }
        match stderr.write(&rest[..rest.len().min(PIECE)]) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(bytes.len() - rest.len()),
        }
    }
    Ok(())
}

/// Whether a write would not block. (A write to a pipe without a reader fails at once.)
fn has_room(stderr: &impl AsFd) -> bool {
    let mut stderr = [PollFd::new(stderr, PollFlags::OUT)];
    poll(&mut stderr, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Logs the number of lost lines as soon as there is room; runs forever.
pub async fn log_lost() -> Infallible {
    let mut reported = 0;
    loop {
        sleep(CHECK_INTERVAL).await;
        let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner).lines;
        if lost != reported {
            // If there is no room for this either, it counts as one more.
            reported = lost;
            warn!(
                lost,
                "the log was not read fast enough: {lost} lines were lost since the start"
            );
        }
    }
}
