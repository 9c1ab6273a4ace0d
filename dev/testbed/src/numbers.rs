//! The sequence numbers of an open TCP connection.

use std::{io, net::TcpStream, os::fd::AsRawFd as _};

use anyhow::{Context as _, Result};

// From linux/tcp.h.
const OFF_WITHOUT_PROBE: libc::c_int = -1;
const ON: libc::c_int = 1;
const RECEIVE_QUEUE: libc::c_int = 1;
const SEND_QUEUE: libc::c_int = 2;

/// Returns the sequence numbers of the next byte to send and of the next byte to receive. Only root may read
/// them.
pub fn next_numbers(stream: &TcpStream) -> Result<[u32; 2]> {
    set(stream, libc::TCP_REPAIR, ON)?;
    let numbers = [SEND_QUEUE, RECEIVE_QUEUE].map(|queue| {
        set(stream, libc::TCP_REPAIR_QUEUE, queue)?;
        number(stream)
    });
    set(stream, libc::TCP_REPAIR, OFF_WITHOUT_PROBE)?;
    let [send, receive] = numbers;
    Ok([send?, receive?])
}

fn set(stream: &TcpStream, option: libc::c_int, value: libc::c_int) -> Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(&value))?;
    // SAFETY: the kernel reads `length` bytes, the size of the number.
    let status = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error()).context("cannot look into a connection");
    }
    Ok(())
}

/// Returns the next number of the selected queue.
fn number(stream: &TcpStream) -> Result<u32> {
    let mut number = 0_u32;
    let mut length = libc::socklen_t::try_from(size_of_val(&number))?;
    // SAFETY: the kernel writes at most `length` bytes, the size of the number, and any bytes are a valid
    // number.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_QUEUE_SEQ,
            (&raw mut number).cast(),
            &raw mut length,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error()).context("cannot read a connection's number");
    }
    Ok(number)
}
