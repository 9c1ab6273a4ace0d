//! Cuts a process off from the kernel's responses.

use std::fs;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use socket2::{Domain, SockFilter, Socket};

/// A filter that drops every message.
const NOTHING: [SockFilter; 1] = [SockFilter::new(0x06, 0, 0, 0)];

/// Makes a process's open netlink sockets lose every arriving message, and returns their number. Later
/// sockets work.
pub fn deafen(process: u32) -> Result<usize> {
    let id = Pid::from_raw(process.try_into()?).context("0 is no process")?;
    let id = pidfd_open(id, PidfdFlags::empty())?;
    let mut deaf = 0;
    for entry in fs::read_dir(format!("/proc/{process}/fd"))? {
        let number = entry?.file_name();
        let number = number.to_str().context("a number")?.parse()?;
        let descriptor = pidfd_getfd(&id, number, PidfdGetfdFlags::empty());
        // The descriptor may be closed by now, or not a socket.
        let Ok(socket) = descriptor.map(Socket::from) else {
            continue;
        };
        if socket
            .domain()
            .is_ok_and(|domain| domain == Domain::from(libc::AF_NETLINK))
        {
            socket.attach_filter(&NOTHING)?;
            deaf += 1;
        }
    }
    Ok(deaf)
}
