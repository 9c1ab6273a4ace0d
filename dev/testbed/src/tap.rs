//! A tap or tun interface: a file takes the place of its wire.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::fs::OpenOptionsExt as _,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::poll::{PollFd, PollFlags, poll};

use crate::namespace::Namespace;

/// Longer than any frame.
const LONGEST: usize = 65_536;

/// From linux/if_tun.h: the request to make an interface, for frames without a header of the driver's.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETLINK: libc::c_ulong = 0x4004_54cd;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
/// Checksums, and TCP's superframes over IPv4 and IPv6.
const OFFLOADS: libc::c_ulong = 1 | 2 | 4;
const TUN: libc::c_short = 0x0001;
const TAP: libc::c_short = 0x0002;
const WITHOUT_HEADER: libc::c_short = 0x1000;
const VIRTIO_HEADERS: libc::c_short = 0x4000;

/// From linux/virtio_net.h: the checksum must be computed; the frame is a superframe of TCP over IPv4.
const NEEDS_CHECKSUM: u8 = 1;
const TCP_OVER_IPV4: u8 = 1;

/// The length of `struct virtio_net_hdr`.
const HEADER: usize = 10;

/// The time until a wire looks whether it is cut, in milliseconds.
const POLL_PATIENCE: u8 = 50;

/// The interval between checks for a frame.
const PACE: Duration = Duration::from_millis(1);

/// `struct ifreq` (linux/if.h), as far as `TUNSETIFF` uses it.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// A tap or tun interface. The kernel removes it on drop.
#[derive(Debug)]
pub struct Tap {
    file: File,
}

impl Tap {
    /// Makes an interface with that name in a namespace, and brings it up.
    pub fn new(namespace: &Namespace, name: &str) -> Result<Self> {
        let tap = Self::make(namespace, name, TAP)?;
        namespace.ip(&["link", "set", name, "up"])?;
        Ok(tap)
    }

    /// Makes an interface like [`Tap::new`] that takes superframes from [`Tap::send_superframe`] and through a
    /// [`Wire`], and gives its namespace's to the wire.
    pub fn merging(namespace: &Namespace, name: &str) -> Result<Self> {
        let tap = Self::make(namespace, name, TAP | VIRTIO_HEADERS)?;
        // SAFETY: the descriptor is open, and the request takes a number.
        let result = unsafe { libc::ioctl(tap.file.as_raw_fd(), TUNSETOFFLOAD, OFFLOADS) };
        ensure!(result == 0, io::Error::last_os_error());
        namespace.ip(&["link", "set", name, "up"])?;
        Ok(tap)
    }

    /// Makes an interface for IP packets, with that name and a device type (linux/if_arp.h), and brings it
    /// up.
    pub fn tun(namespace: &Namespace, name: &str, device_type: libc::c_ulong) -> Result<Self> {
        let tun = Self::make(namespace, name, TUN)?;
        // SAFETY: the descriptor is open, and the request takes a number.
        let result = unsafe { libc::ioctl(tun.file.as_raw_fd(), TUNSETLINK, device_type) };
        ensure!(result == 0, io::Error::last_os_error());
        namespace.ip(&["link", "set", name, "up"])?;
        Ok(tun)
    }

    fn make(namespace: &Namespace, name: &str, kind: libc::c_short) -> Result<Self> {
        ensure!(name.len() < libc::IFNAMSIZ, "the name is too long");
        let mut request = Request {
            name: [0; libc::IFNAMSIZ],
            flags: kind | WITHOUT_HEADER,
            rest: [0; 22],
        };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        let file = namespace.enter(|| {
            let mut options = OpenOptions::new();
            options.read(true).write(true);
            // For non-blocking reads; and the driver runs native programs only on frames that are written
            // without blocking.
            options.custom_flags(libc::O_NONBLOCK);
            let file = options.open("/dev/net/tun")?;
            // SAFETY: the descriptor is open, and the pointer is to a request of the size that the
            // kernel reads and writes.
            let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) };
            ensure!(result == 0, io::Error::last_os_error());
            Ok(file)
        })?;
        Ok(Self { file })
    }

    /// Makes the interface receive a frame.
    pub fn send(&mut self, frame: &[u8]) -> Result<()> {
        let sent = self.file.write(frame).context("cannot send a frame")?;
        ensure!(sent == frame.len(), "{sent} bytes were sent");
        Ok(())
    }

    /// Makes the interface receive a superframe: a segment of TCP over IPv4 that stands for many, each with a
    /// payload of `size` bytes, as a virtual machine sends it.
    pub fn send_superframe(&mut self, frame: &[u8], size: u16) -> Result<()> {
        // Ethernet, IPv4 and TCP without options; the checksum is 16 bytes into TCP's header.
        let [headers, tcp, checksum] = [54u16, 34, 16].map(u16::to_ne_bytes);
        let mut bytes = vec![NEEDS_CHECKSUM, TCP_OVER_IPV4];
        for field in [headers, size.to_ne_bytes(), tcp, checksum] {
            bytes.extend(field);
        }
        bytes.extend(frame);
        self.send(&bytes)
    }

    /// Returns the next frame that the interface sends; `None`: none in that time.
    pub fn receive(&mut self, patience: Duration) -> Result<Option<Vec<u8>>> {
        let begun = Instant::now();
        let mut frame = vec![0; LONGEST];
        loop {
            match self.file.read(&mut frame) {
                Ok(length) => {
                    frame.truncate(length);
                    return Ok(Some(frame));
                }
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) if begun.elapsed() >= patience => return Ok(None),
                Err(_) => thread::sleep(PACE),
            }
        }
    }
}

/// Carries frames between two interfaces of one kind, both ways. The kernel removes both on drop.
#[derive(Debug)]
pub struct Wire {
    is_cut: Arc<AtomicBool>,
    carrier: Option<JoinHandle<()>>,
}

impl Wire {
    /// Begins to carry frames between interfaces that one function of [`Tap`] has made.
    pub fn between(ends: [Tap; 2]) -> Result<Self> {
        let is_cut = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_cut);
        let ends = ends.map(|end| end.file);
        let carrier = thread::Builder::new()
            .name("wire".to_owned())
            .spawn(move || {
                while !until.load(Ordering::Relaxed) {
                    carry(&ends);
                }
            })?;
        Ok(Self {
            is_cut,
            carrier: Some(carrier),
        })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.is_cut.store(true, Ordering::Relaxed);
        if let Some(carrier) = self.carrier.take() {
            // A wire that failed has shown its panic.
            drop(carrier.join());
        }
    }
}

/// Waits for frames for a moment, and carries them. As on a real wire, an end that has no room loses them.
fn carry(ends: &[File; 2]) {
    let mut ready = ends
        .each_ref()
        .map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
    if poll(&mut ready, POLL_PATIENCE).is_err() {
        return;
    }
    let mut frame = vec![0; LONGEST + HEADER];
    for (mut from, mut to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        while let Ok(length) = from.read(&mut frame) {
            let _lost = to.write(&frame[..length]);
        }
    }
}
