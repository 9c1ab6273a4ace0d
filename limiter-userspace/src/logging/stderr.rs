//! Stderr, as far as somebody reads it. A pipe that nobody reads is full at some time, and whoever
//! writes to it then waits for ever. The daemon does not: lines that there is no room for are lost,
//! and it is told how many.

use std::{
    convert::Infallible,
    io::{self, Write},
    os::fd::AsFd,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::sleep;
use tracing::warn;

/// A pipe that poll(2) calls writable has room for so much: `PIPE_BUF` on Linux.
const PIECE: usize = 4096;

/// How often it is looked whether lines were lost.
const LOOK: Duration = Duration::from_secs(5);

/// Who holds it is writing.
static LOST: Mutex<Lost> = Mutex::new(Lost {
    lines: 0,
    is_torn: false,
});

struct Lost {
    /// Since the process began.
    lines: u64,
    /// The last line has no end.
    is_torn: bool,
}

/// Writes a line at once or not at all, but for those of some kilobytes, which may be torn.
pub(super) struct Line;

impl Write for Line {
    /// Takes all of it, whatever becomes of it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
        let written = if lost.is_torn {
            write(b"\n").map_err(|_| 0).and_then(|()| write(line))
        } else {
            write(line)
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

/// Writes as long as that does not wait for anybody; or else returns how much was written.
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

/// Whether something can be written without waiting. (What nobody can read any more is refused, and
/// does not wait either.)
fn has_room(stderr: &impl AsFd) -> bool {
    let mut stderr = [PollFd::new(stderr, PollFlags::OUT)];
    poll(&mut stderr, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Says in the log how many lines it has lost, as soon as there is room; forever.
pub async fn tell_lost() -> Infallible {
    let mut told = 0;
    loop {
        sleep(LOOK).await;
        let lost = LOST.lock().unwrap_or_else(PoisonError::into_inner).lines;
        if lost != told {
            // Should there be no room for this either, there is one more.
            told = lost;
            warn!(
                lost,
                "nobody has read the log in time: {lost} lines of it are lost since the start"
            );
        }
    }
}
