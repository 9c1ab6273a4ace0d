//! A plain host: a network namespace with addresses, and with sockets for everything.

use std::{
    fs,
    net::IpAddr,
    path::Path as FilePath,
    slice, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use testbed::{
    CLIENT_INTERFACE, Delivery, IpSockets, Limiter, Namespace, Pair, RawSender, SERVER_INTERFACE,
};

use crate::build::{Path, Tag, UDP, frame};

/// The UDP port on which the host listens.
pub(crate) const PORT: u16 = 7000;

/// The sources of all packets under test. The client does not have these addresses itself: it would
/// respond to the host's answers.
pub(crate) const SOURCES: [&str; 2] = ["10.77.0.2", "fd77::2"];

/// The destinations of these packets.
pub(crate) const DESTINATIONS: [&str; 2] = ["10.77.0.1", "fd77::1"];

/// The source of each round's last packet. Its arrival shows that the host has handled all others.
const FENCE: &str = "10.77.0.200";

/// How long the last packet may take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// The interval between checks that the host is ready.
const PACE: Duration = Duration::from_millis(5);

/// Leave room for fragments of datagrams that never become whole.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/ipfrag_high_thresh", "268435456"),
    ("ipv6/ip6frag_high_thresh", "268435456"),
    // ICMP errors do not matter here.
    ("ipv4/icmp_ratelimit", "1000"),
    ("ipv6/icmp/ratelimit", "1000"),
];

/// Returns the path from the family's source to the host.
pub(crate) fn path(v4: bool) -> Path {
    let family = usize::from(!v4);
    Path {
        source: SOURCES[family].parse().expect("an address"),
        destination: DESTINATIONS[family].parse().expect("an address"),
    }
}

/// The host, and the sender.
pub(crate) struct Host {
    pair: Pair,
    sender: RawSender,
    sockets: IpSockets,
    rounds: u32,
}

impl Host {
    pub(crate) fn new() -> Result<Self> {
        // On two CPUs packets could overtake each other.
        stay_on_this_cpu()?;
        let networks = |texts: &[&str]| texts.iter().map(|text| text.parse()).collect();
        let client: Result<Vec<_>, _> = networks(&["10.77.0.9/24", "fd77::9/64"]);
        let server: Result<Vec<_>, _> = networks(&["10.77.0.1/24", "fd77::1/64"]);
        let pair = Pair::new(&client?, &server?)?;
        pair.server.enter(|| {
            SETTINGS
                .iter()
                .try_for_each(|(setting, value)| set(setting, value))
        })?;
        let mut host = Self {
            sender: RawSender::new(&pair.client, CLIENT_INTERFACE)?,
            sockets: IpSockets::new(&pair.server, PORT)?,
            rounds: 0,
            pair,
        };
        host.wait_for_ipv6()?;
        Ok(host)
    }

    /// Waits until the kernel has made the new IPv6 address ready.
    fn wait_for_ipv6(&mut self) -> Result<()> {
        let path = path(false);
        let frame = frame(&path.packet(UDP, &path.udp((9, PORT), b"ready?")));
        let deadline = Instant::now() + PATIENCE;
        while self.send(slice::from_ref(&frame))?.is_empty() {
            ensure!(
                Instant::now() < deadline,
                "IPv6 did not become ready in time"
            );
            thread::sleep(PACE);
        }
        Ok(())
    }

    /// Adds VLAN interfaces, each on the one before it, named `v0` and so on; `false`: the kernel
    /// has no VLANs.
    pub(crate) fn add_vlans(&self, tags: &[Tag]) -> Result<bool> {
        let server = &self.pair.server;
        let mut below = SERVER_INTERFACE.to_owned();
        for (number, tag) in (0..).zip(tags) {
            let name = format!("v{number}");
            if !add_vlan(server, &below, &name, *tag)? {
                return Ok(false);
            }
            server.enter(|| {
                set(&format!("ipv4/conf/{name}/rp_filter"), "0")?;
                set(&format!("ipv6/conf/{name}/accept_dad"), "0")
            })?;
            below = name;
        }
        Ok(true)
    }

    pub(crate) fn pair(&self) -> &Pair {
        &self.pair
    }

    /// Puts the limiter in front of the host.
    pub(crate) fn limit(&self, mode: &str, configuration: &str) -> Result<Limiter> {
        let arguments = ["-i", SERVER_INTERFACE, "--mode", mode];
        Limiter::start(
            FilePath::new(env!("CARGO_BIN_EXE_limiter")),
            &self.pair.server,
            configuration,
            &arguments,
        )
    }

    /// Sends frames, waits until the host has handled them, and returns all that sockets got.
    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) -> Result<Vec<Delivery>> {
        self.rounds += 1;
        let fence_data = self.rounds.to_be_bytes();
        let mut frames = frames.to_vec();
        let fence: IpAddr = FENCE.parse()?;
        let path = Path {
            source: fence,
            ..path(true)
        };
        frames.push(frame(&path.packet(UDP, &path.udp((9, 9), &fence_data))));
        self.sender.send_frames(&frames)?;
        let deadline = Instant::now() + PATIENCE;
        let mut deliveries = Vec::new();
        loop {
            let more = self
                .sockets
                .read(deadline.saturating_duration_since(Instant::now()))?;
            deliveries.extend(more);
            let whole = deliveries.iter().any(|delivery| {
                delivery.source == fence && delivery.payload.ends_with(&fence_data)
            });
            if whole {
                break;
            }
            ensure!(
                Instant::now() < deadline,
                "the last packet did not arrive: {deliveries:?}"
            );
        }
        // Everything before it has arrived by now.
        deliveries.extend(self.sockets.read(Duration::ZERO)?);
        deliveries.retain(|delivery| delivery.source != fence);
        Ok(deliveries)
    }
}

/// Adds a VLAN interface; `false`: the kernel has no VLANs.
pub(crate) fn add_vlan(
    namespace: &Namespace,
    below: &str,
    name: &str,
    (kind, vid): Tag,
) -> Result<bool> {
    let protocol = if kind == 0x8100 { "802.1Q" } else { "802.1ad" };
    let vid = vid.to_string();
    let vlan = ["type", "vlan", "protocol", protocol, "id", &vid];
    let link = ["link", "add", "link", below, "name", name];
    if let Err(error) = namespace.ip(&[&link[..], &vlan].concat()) {
        // Only a kernel built without VLANs reports this.
        let said = format!("{error:#}");
        let unknown = said.contains("Unknown device type") || said.contains("not supported");
        return if unknown { Ok(false) } else { Err(error) };
    }
    namespace.ip(&["link", "set", name, "addrgenmode", "none", "up"])?;
    Ok(true)
}

/// Keeps the thread on its present CPU.
fn stay_on_this_cpu() -> Result<()> {
    let cpu = nix::sched::sched_getcpu().context("cannot tell the CPU")?;
    let mut only = CpuSet::new();
    only.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &only).context("cannot stay on a CPU")
}

fn set(setting: &str, value: &str) -> Result<()> {
    let path = FilePath::new("/proc/sys/net").join(setting);
    fs::write(&path, value).with_context(|| format!("cannot set {} to {value}", path.display()))
}
