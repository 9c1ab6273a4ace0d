//! A plain host: a network namespace with addresses, and with sockets for whatever comes.

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

/// The port of UDP at which the host listens.
pub(crate) const PORT: u16 = 7000;

/// Every packet under test comes from one of these, which the client does not have itself: it
/// would answer what the host sends back.
pub(crate) const SOURCES: [&str; 2] = ["10.77.0.2", "fd77::2"];

/// Where they go.
pub(crate) const DESTINATIONS: [&str; 2] = ["10.77.0.1", "fd77::1"];

/// Who sends the last packet of each round, which tells that all before it have been dealt with.
const FENCE: &str = "10.77.0.200";

/// How long the last packet may take, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked whether the host is ready.
const PACE: Duration = Duration::from_millis(5);

/// Fragments of datagrams that never become whole are in nobody's way.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/ipfrag_high_thresh", "268435456"),
    ("ipv6/ip6frag_high_thresh", "268435456"),
    // ICMP errors are of no interest here.
    ("ipv4/icmp_ratelimit", "1000"),
    ("ipv6/icmp/ratelimit", "1000"),
];

/// From the first of the family's sources to the host.
pub(crate) fn path(v4: bool) -> Path {
    let family = usize::from(!v4);
    Path {
        source: SOURCES[family].parse().expect("an address"),
        destination: DESTINATIONS[family].parse().expect("an address"),
    }
}

/// The host, and who sends to it.
pub(crate) struct Host {
    pair: Pair,
    sender: RawSender,
    sockets: IpSockets,
    rounds: u32,
}

impl Host {
    pub(crate) fn new() -> Result<Self> {
        // Packets must not overtake each other, which they may on two CPUs.
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

    /// The kernel makes an IPv6 address ready some time after it was told of it.
    fn wait_for_ipv6(&mut self) -> Result<()> {
        let path = path(false);
        let frame = frame(&path.packet(UDP, &path.udp((9, PORT), b"ready?")));
        let deadline = Instant::now() + PATIENCE;
        while self.send(slice::from_ref(&frame))?.is_empty() {
            ensure!(Instant::now() < deadline, "IPv6 is not ready in time");
            thread::sleep(PACE);
        }
        Ok(())
    }

    /// With VLAN interfaces, each on the one before it, named `v0` and so on; `false`: the kernel
    /// knows none.
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

    /// Puts the limiter in front of it.
    pub(crate) fn limit(&self, mode: &str, configuration: &str) -> Result<Limiter> {
        let arguments = ["-i", SERVER_INTERFACE, "--mode", mode];
        Limiter::start(
            FilePath::new(env!("CARGO_BIN_EXE_limiter")),
            &self.pair.server,
            configuration,
            &arguments,
        )
    }

    /// Sends frames, and returns all that sockets got of them once the host has dealt with them.
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
                "the last packet does not arrive: {deliveries:?}"
            );
        }
        // Whatever came before it is there by now.
        deliveries.extend(self.sockets.read(Duration::ZERO)?);
        deliveries.retain(|delivery| delivery.source != fence);
        Ok(deliveries)
    }
}

/// Adds a VLAN interface; `false`: the kernel knows none.
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
        // This, and nothing else, is said where the kernel is built without them.
        let said = format!("{error:#}");
        let unknown = said.contains("Unknown device type") || said.contains("not supported");
        return if unknown { Ok(false) } else { Err(error) };
    }
    namespace.ip(&["link", "set", name, "addrgenmode", "none", "up"])?;
    Ok(true)
}

/// Keeps the thread on the CPU that it is on.
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
