//! Watches an interface.

use std::{
    io::{self, IsTerminal as _, Read as _},
    mem::size_of,
    os::fd::AsRawFd as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use futures_util::TryStreamExt as _;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use limiter_capture::{CapturedFrame, Packet};
use limiter_datapath::kernel::interface::{self, Interface, InterfaceError};
use limiter_offline::suggest::{Frames, Host, Observation, Observer};
use limiter_report::render::{count, duration};
use rtnetlink::packet_route::link::{LinkAttribute, LinkLayerType};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};
use tokio::task::spawn_blocking;

use crate::cli::repeat::{self, EndSignals};

/// More bytes than any frame that the kernel merges.
const LONGEST: usize = 1 << 20;

/// The socket's receive buffer, in bytes. The system may allow less to users other than root.
const ROOM: usize = 32 << 20;

/// The longest wait for a packet before other events are checked.
const PATIENCE: Duration = Duration::from_millis(100);

/// The packets, and warnings against relying on them.
pub(super) struct WatchResult {
    pub(super) observed: Observation,
    pub(super) warnings: Vec<String>,
}

/// Watches an interface for a time, or until the user ends it. `observer` gets the link's MTU.
pub(super) fn watch(
    name: &str,
    length: Duration,
    observer: impl FnOnce(u32) -> Observer,
) -> anyhow::Result<WatchResult> {
    let mut watched = None;
    repeat::run(async {
        watched = Some(watch_until_end(name, length, observer).await?);
        Ok(())
    })?;
    watched.context("nothing was watched")
}

async fn watch_until_end(
    name: &str,
    length: Duration,
    observer: impl FnOnce(u32) -> Observer,
) -> anyhow::Result<WatchResult> {
    let mut end = EndSignals::new()?;
    let interface = find(name).await?;
    let host = Host::Hardware(hardware_address(&interface).await?);
    let socket = open(&interface)?;
    let frames = Frames::new(observer(interface.mtu), Some(host));
    let mut warnings = Vec::new();
    if interface.xdp_program.is_some() {
        warnings.push(format!(
            "an XDP program is attached to {name}: its drops are not seen here"
        ));
    }
    let ended = Arc::new(AtomicBool::new(false));
    let mut reading = spawn_blocking({
        let (ended, name) = (Arc::clone(&ended), name.to_owned());
        move || read(&socket, &name, length, &ended, frames)
    });
    let read = tokio::select! {
        read = &mut reading => read?,
        () = end.wanted() => {
            ended.store(true, Ordering::Relaxed);
            reading.await?
        }
    };
    let mut read = read?;
    warnings.append(&mut read.warnings);
    Ok(WatchResult { warnings, ..read })
}

/// Reads packets for a time, or until the user ends it.
fn read(
    socket: &Socket,
    name: &str,
    length: Duration,
    ended: &AtomicBool,
    mut frames: Frames<Observer>,
) -> anyhow::Result<WatchResult> {
    let mut warnings = Vec::new();
    let progress = Progress::new(length);
    let mut buffer = vec![0; LONGEST];
    let mut packets = 0;
    let begun = Instant::now();
    let mut drawn = Duration::ZERO;
    loop {
        let read = (&*socket).read(&mut buffer);
        let elapsed = begun.elapsed();
        if elapsed >= length || ended.load(Ordering::Relaxed) {
            break;
        }
        if elapsed >= drawn + PATIENCE {
            drawn = elapsed;
            progress.show(elapsed, packets);
        }
        match read {
            Ok(length) => {
                packets += 1;
                let data = &buffer[..length];
                let Ok(()) = frames.sort(&Packet {
                    time_ns: i128::from(nanoseconds(elapsed)),
                    frame: CapturedFrame { data, length },
                });
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                let after = duration(nanoseconds(elapsed));
                warnings.push(format!("{name} was down after {after}"));
            }
            Err(error) => bail!("cannot read the packets of {name}: {error}"),
        }
    }
    drop(progress);
    let lost = lost(socket)?;
    if lost > 0 {
        warnings.push(format!(
            "{} packets came too fast to be looked at, and do not count: use a capture",
            count(lost)
        ));
    }
    let Ok((observer, _)) = frames.finish();
    Ok(WatchResult {
        observed: observer.finish(),
        warnings,
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

async fn find(name: &str) -> anyhow::Result<Interface> {
    let all = interface::list().await?;
    let others = all.iter().map(|one| one.name.clone()).collect();
    let found = all.into_iter().find(|one| one.name == name);
    Ok(found.ok_or_else(|| InterfaceError::Unknown {
        name: name.to_owned(),
        others,
    })?)
}

async fn hardware_address(interface: &Interface) -> anyhow::Result<[u8; 6]> {
    let name = &interface.name;
    let (connection, handle, _) = rtnetlink::new_connection()?;
    // The task ends when the handle is dropped.
    tokio::spawn(connection);
    let mut links = handle.link().get().match_index(interface.index).execute();
    let link = links.try_next().await;
    let link = link.map_err(|error| anyhow!("cannot ask the kernel for {name}: {error}"))?;
    let link = link.with_context(|| format!("{name} is gone"))?;
    if link.header.link_layer_type == LinkLayerType::Loopback {
        bail!(
            "{name} has only this host's own packets: name the interface that others reach it by"
        );
    }
    let is_ethernet = link.header.link_layer_type == LinkLayerType::Ether;
    let address = link
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => <[u8; 6]>::try_from(bytes.as_slice()).ok(),
            _ => None,
        });
    match address {
        Some(address) if is_ethernet => Ok(address),
        _ => bail!("{name} carries no Ethernet frames, and limiter limits no others"),
    }
}

/// Opens a socket for all packets of an interface, both ways.
fn open(interface: &Interface) -> anyhow::Result<Socket> {
    let name = &interface.name;
    // With protocol 0 it receives nothing until it is bound.
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)));
    let socket = socket.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            anyhow!("watching {name} needs root (CAP_NET_RAW); or give a capture")
        }
        _ => anyhow!("cannot watch {name}: {error}"),
    })?;
    // CAP_NET_ADMIN may set more than net.core.rmem_max.
    if set_socket_recv_buffer_size_force(&socket, ROOM).is_err() {
        socket.set_recv_buffer_size(ROOM)?;
    }
    socket.set_read_timeout(Some(PATIENCE))?;
    let address = address(interface.index)?;
    let bound = socket.bind(&address);
    bound.map_err(|error| anyhow!("cannot watch {name}: {error}"))?;
    Ok(socket)
}

/// Returns the address of all packets of an interface.
fn address(index: u32) -> anyhow::Result<SockAddr> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is the address of AF_PACKET and fits into the storage; any bytes are a valid
    // sockaddr_ll.
    let link = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    link.sll_family = libc::sa_family_t::try_from(libc::AF_PACKET)?;
    link.sll_protocol = u16::try_from(libc::ETH_P_ALL)?.to_be();
    link.sll_ifindex = i32::try_from(index)?;
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>())?;
    // SAFETY: the storage holds a sockaddr_ll, which has that length.
    Ok(unsafe { SockAddr::new(storage, length) })
}

/// Returns how many packets found no room in the socket's buffer.
fn lost(socket: &Socket) -> anyhow::Result<u64> {
    let mut statistics = libc::tpacket_stats {
        tp_packets: 0,
        tp_drops: 0,
    };
    let mut length = libc::socklen_t::try_from(size_of::<libc::tpacket_stats>())?;
    // SAFETY: the kernel writes at most `length` bytes to `statistics`, which has that size, and the socket is
    // open.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error().into());
    }
    Ok(u64::from(statistics.tp_drops))
}

struct Progress(ProgressBar);

impl Progress {
    fn new(length: Duration) -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(length.as_secs()).with_finish(ProgressFinish::AndClear);
        let style = ProgressStyle::with_template("{wide_bar} {msg}, {eta} left; Ctrl-C ends it");
        Self(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }

    fn show(&self, elapsed: Duration, packets: u64) {
        self.0.set_message(format!("{} packets", count(packets)));
        self.0.set_position(elapsed.as_secs());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
