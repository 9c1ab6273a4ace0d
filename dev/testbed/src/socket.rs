//! The common settings of the counting sockets.

use std::{io, os::fd::AsRawFd as _, time::Duration};

use anyhow::{Context as _, Result};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use socket2::Socket;

/// Enough for a hundred thousand small packets; only root may set it so high.
const RECEIVE_BUFFER: usize = 256 << 20;

/// The interval between a receiver's checks for its end.
const PATIENCE: Duration = Duration::from_millis(20);

/// The result of SO_MEMINFO: SK_MEMINFO_VARS numbers, from linux/sock_diag.h.
type MemoryInformation = [u32; 9];

/// The index of the drops in it: SK_MEMINFO_DROPS.
const DROPS: usize = 8;

/// Gives a socket a large buffer and a time limit for reads.
pub(crate) fn prepare(socket: &Socket) -> Result<()> {
    setsockopt(socket, RcvBufForce, &RECEIVE_BUFFER).context("cannot enlarge a receive buffer")?;
    socket
        .set_read_timeout(Some(PATIENCE))
        .context("cannot set a time limit on a socket")
}

/// Returns the number of packets that a socket dropped.
pub(crate) fn drops(socket: &Socket) -> Result<u64> {
    let mut information = MemoryInformation::default();
    let mut length = libc::socklen_t::try_from(size_of::<MemoryInformation>())?;
    // SAFETY: the kernel writes at most `length` bytes, the size of the numbers, and any bytes are valid
    // numbers.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            (&raw mut information).cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error()).context("cannot read a socket's drops");
    }
    Ok(u64::from(information[DROPS]))
}

/// Makes a packet socket ignore the host's own packets.
pub(crate) fn ignore_outgoing(socket: &Socket) -> Result<()> {
    let on: libc::c_int = 1;
    let length = libc::socklen_t::try_from(size_of_val(&on))?;
    // SAFETY: the kernel reads `length` bytes, the size of the number.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const on).cast(),
            length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error()).context("cannot ignore what the host sends");
    }
    Ok(())
}
