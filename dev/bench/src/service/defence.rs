//! The defences in front of a server, or inside it.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf, EbpfLoader,
    maps::HashMap,
    programs::{Xdp, XdpMode},
};
use bench_common::{Group, KNOWN};
use limiter_datapath::kernel::verify;
use nix::net::if_::if_nametoindex;
use testbed::{CLIENT_INTERFACE, Limiter, Pair, SERVER_INTERFACE};

use super::{
    clients::{PlannedQuestion, address},
    defence_settings::{ANSWERING, AUTOMATIC, DefenceSettings, MEASURED, PACKAGED},
    flood::{Attack, Flood},
    server::{Program, Service},
    setup::{CLIENTS_CPU, set},
};
use crate::{cpu, objects, tool};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Defence {
    pub(crate) name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Nothing,
    /// nftables' limit for each source.
    Meter,
    /// nftables' synproxy, against SYNs.
    Synproxy,
    /// The response rate limiting of another DNS server.
    Rrl,
    /// This limiter.
    Limiter(DefenceSettings),
    /// A program that passes a fixed list of clients.
    Ideal,
}

/// How long a flood lasts before the measurement.
const LEAD: Duration = Duration::from_millis(500);

/// The same for a limiter that finds its rates meanwhile, four times a second: it doubles them until the server is
/// overloaded, within two seconds, and lowers them again in three. A loss in the flood's first moment ends the doubling
/// early; then this time is too short.
const FINDING: Duration = Duration::from_secs(6);

/// Names that the targets use.
pub(crate) const NOTHING: &str = "nothing";
pub(crate) const SYNPROXY: &str = "synproxy";
pub(crate) const LIMITER: &str = "limiter";
pub(crate) const KNOWN_FIRST: &str = "limiter, known";
pub(crate) const ANSWERS: &str = "limiter, deny";
pub(crate) const AUTO: &str = "limiter, auto";
pub(crate) const IDEAL: &str = "ideal";

/// All defences, in the order of the results.
pub(crate) const DEFENCES: [Defence; 9] = [
    Defence::new(NOTHING, Kind::Nothing),
    Defence::new("nftables meter", Kind::Meter),
    Defence::new(SYNPROXY, Kind::Synproxy),
    Defence::new("Knot's rrl", Kind::Rrl),
    Defence::new(LIMITER, Kind::Limiter(PACKAGED)),
    Defence::new(KNOWN_FIRST, Kind::Limiter(MEASURED)),
    Defence::new(ANSWERS, Kind::Limiter(ANSWERING)),
    Defence::new(AUTO, Kind::Limiter(AUTOMATIC)),
    Defence::new(IDEAL, Kind::Ideal),
];

/// A defence at work. It ends on drop, or with the namespace.
pub(super) enum ActiveDefence {
    InNamespace,
    /// The object that keeps a program attached.
    Program {
        _object: Box<Ebpf>,
    },
    Limiter {
        limiter: Limiter,
        is_automatic: bool,
        /// The object on the clients' end that makes it accept packets sent back.
        wire: Option<Box<Ebpf>>,
    },
}

impl ActiveDefence {
    /// Fails if the defence has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self {
            Self::Limiter { limiter, .. } => limiter.check(),
            Self::InNamespace | Self::Program { .. } => Ok(()),
        }
    }

    /// Returns whether its program sends packets back.
    pub(super) const fn sends_back(&self) -> bool {
        matches!(self, Self::Limiter { wire: Some(_), .. })
    }

    /// Returns a command that shows its automatic rates, or `None` if it has none.
    pub(super) fn automatic(&self) -> Option<Command> {
        match self {
            Self::Limiter {
                limiter,
                is_automatic: true,
                ..
            } => Some(limiter.command(&["status", "--json"])),
            Self::Limiter { .. } | Self::InNamespace | Self::Program { .. } => None,
        }
    }
}

impl Defence {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }

    /// Returns the server to run behind it.
    pub(super) const fn server(&self, service: Service) -> Program {
        match (self.kind, service) {
            (Kind::Rrl, Service::Dns) => Program::Knot,
            (_, Service::Dns) => Program::Nsd,
            (_, Service::Web) => Program::Nginx,
        }
    }

    /// Returns whether it is meant for this flood.
    pub(crate) fn applies_to(&self, flood: &Flood) -> bool {
        match self.kind {
            Kind::Nothing | Kind::Limiter(_) | Kind::Ideal => true,
            // Defences that know no clients do not depend on visits, so one kind of flood is enough.
            Kind::Meter => !flood.by_visits,
            Kind::Rrl => flood.service == Service::Dns && !flood.by_visits,
            Kind::Synproxy => flood.attack == Attack::Syns,
        }
    }

    /// Returns how long a flood lasts before the measurement.
    pub(super) const fn lead(&self) -> Duration {
        match self.kind {
            Kind::Limiter(configured) if configured.is_automatic => FINDING,
            _ => LEAD,
        }
    }

    /// Returns why it cannot take part on this machine, if so.
    pub(crate) fn missing(&self, limiter: Option<&Path>) -> Option<String> {
        let own = match self.kind {
            Kind::Meter | Kind::Synproxy => tool::missing(&["nft", "ethtool"]),
            Kind::Nothing | Kind::Rrl => tool::missing(&["ethtool"]),
            Kind::Limiter(_) if limiter.is_none() => Some("--limiter names no program".to_owned()),
            Kind::Limiter(_) | Kind::Ideal => None,
        };
        own.or_else(|| {
            [Service::Dns, Service::Web]
                .into_iter()
                .find_map(|service| self.server(service).missing())
        })
    }

    /// Starts it on the server's end. `planned` are the clients' questions to come.
    pub(super) fn start(
        &self,
        pair: &Pair,
        flood: &Flood,
        planned: &[PlannedQuestion],
        limiter: Option<&Path>,
    ) -> Result<ActiveDefence> {
        match self.kind {
            Kind::Nothing | Kind::Rrl => tool::take_live_frames(&pair.server)?,
            Kind::Meter => {
                tool::take_live_frames(&pair.server)?;
                tool::run(&pair.server, &["nft", "-f", "-"], &meter(flood))?;
            }
            Kind::Synproxy => {
                tool::take_live_frames(&pair.server)?;
                // Required by synproxy's documentation.
                set(&pair.server, "net/netfilter/nf_conntrack_tcp_loose", "0")?;
                tool::run(&pair.server, &["nft", "-f", "-"], SYNPROXY_RULES)?;
            }
            Kind::Ideal => return ideal(pair, flood, planned),
            Kind::Limiter(configured) => {
                let limiter = limiter.context("no limiter")?;
                // The daemon itself runs on the clients' CPU.
                cpu::pin(CLIENTS_CPU)?;
                let text = configured.here(flood);
                let limiter = Limiter::start(limiter, &pair.server, &text, &[])?;
                if !flood.by_visits {
                    trust(&limiter, flood)?;
                }
                let wire = configured
                    .answers(flood.service)
                    .then(|| wire(pair))
                    .transpose()?;
                return Ok(ActiveDefence::Limiter {
                    limiter,
                    is_automatic: configured.is_automatic,
                    wire: wire.map(Box::new),
                });
            }
        }
        Ok(ActiveDefence::InNamespace)
    }
}

/// Makes the limiter trust the known clients, as an application does that knows its users. Learning them by their
/// visits would take an hour before each flood.
fn trust(limiter: &Limiter, flood: &Flood) -> Result<()> {
    let arguments = ["trust", "--stdin", "--for", "1h"];
    let clients: Vec<_> = (0..KNOWN)
        .map(|member| address(Group::Known, member, flood.is_v6()).to_string())
        .collect();
    let clients = clients.join("\n") + "\n";
    let shown = format!("limiter {}", arguments.join(" "));
    tool::feed(limiter.command(&arguments), &shown, &clients)?;
    Ok(())
}

/// Returns a limit for each source, like the one of the packaged configurations: queries, or new connections.
fn meter(flood: &Flood) -> String {
    let (kind, key) = if flood.is_v6() {
        ("ipv6_addr", "ip6 saddr")
    } else {
        ("ipv4_addr", "ip saddr")
    };
    let (matching, rate, burst) = match flood.service {
        Service::Dns => ("udp dport 53", 500, 2000),
        Service::Web => ("tcp dport 80 tcp flags syn / syn,ack", 50, 300),
    };
    format!(
        "table netdev bench {{
  set sources {{ type {kind}; size 1048576; flags dynamic,timeout; timeout 10s; }}
  chain ingress {{
    type filter hook ingress device {SERVER_INTERFACE} priority 0;
    {matching} update @sources {{ {key} limit rate over {rate}/second burst {burst} packets }} drop
  }}
}}
"
    )
}

/// For both families.
const SYNPROXY_RULES: &str = "table inet bench {
  chain before {
    type filter hook prerouting priority raw;
    tcp dport 80 tcp flags syn notrack
  }
  chain input {
    type filter hook input priority filter;
    tcp dport 80 ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm
    ct state invalid drop
  }
}
";

/// Makes the clients' end accept packets sent back to clients, and send packets with their checksums.
fn wire(pair: &Pair) -> Result<Ebpf> {
    pair.compute_checksums()?;
    let mut ebpf = EbpfLoader::new().load(objects::BENCH)?;
    let program: &mut Xdp = ebpf.program_mut("wire").context("no wire")?.try_into()?;
    verify(|| program.load())?;
    pair.client.enter(|| {
        let index = if_nametoindex(CLIENT_INTERFACE)?;
        program.attach_to_if_index(index, XdpMode::Driver)?;
        Ok(())
    })?;
    Ok(ebpf)
}

/// Attaches the program that passes the planned clients, except clients with forged addresses.
fn ideal(pair: &Pair, flood: &Flood, planned: &[PlannedQuestion]) -> Result<ActiveDefence> {
    let mut good = planned.to_vec();
    good.retain(|planned| !flood.forges(planned.group, planned.member));
    let mut ebpf = load_ideal(flood.is_v6(), &good)?;
    let program: &mut Xdp = ebpf.program_mut("ideal").context("no ideal")?.try_into()?;
    pair.server.enter(|| {
        let index = if_nametoindex(SERVER_INTERFACE)?;
        program.attach_to_if_index(index, XdpMode::Driver)?;
        Ok(())
    })?;
    Ok(ActiveDefence::Program {
        _object: Box::new(ebpf),
    })
}

fn load_ideal(is_v6: bool, planned: &[PlannedQuestion]) -> Result<Ebpf> {
    let room = u32::try_from(planned.len())? + 1;
    let mut ebpf = EbpfLoader::new()
        .map_max_entries("GOOD", room)
        .load(objects::BENCH)?;
    let map = ebpf.map_mut("GOOD").context("the object has no GOOD")?;
    let mut good = HashMap::<_, [u32; 2], u32>::try_from(map)?;
    for planned in planned {
        good.insert(key(planned.group, planned.member, is_v6), 1, 0)?;
    }
    // The clients' router, which checks that the server is up.
    good.insert([u32::from_ne_bytes([198, 18, 0, 2]), 0], 1, 0)?;
    let program: &mut Xdp = ebpf.program_mut("ideal").context("no ideal")?.try_into()?;
    verify(|| program.load())?;
    Ok(ebpf)
}

/// Returns the words that the program reads from the packet.
fn key(group: Group, member: u32, is_v6: bool) -> [u32; 2] {
    if is_v6 {
        let half = group.v6(member).to_be_bytes();
        let word =
            |at: usize| u32::from_ne_bytes([half[at], half[at + 1], half[at + 2], half[at + 3]]);
        [word(0), word(4)]
    } else {
        [group.v4(member).to_be(), 0]
    }
}

#[cfg(test)]
mod tests {
    use aya::{TestRun as _, TestRunOptions};

    use super::*;
    use crate::service::clients::working_day;

    const PASS: u32 = 2;
    const DROP: u32 = 1;

    #[test]
    fn the_ideal_passes_those_on_its_list_and_nobody_else() {
        let planned = working_day(Duration::from_secs(1));
        for is_v6 in [false, true] {
            let ebpf = load_ideal(is_v6, &planned).unwrap();
            let program: &Xdp = ebpf.program("ideal").unwrap().try_into().unwrap();
            let run = |frame: &[u8]| {
                let options = TestRunOptions {
                    data_in: Some(frame),
                    ..TestRunOptions::new()
                };
                program.test_run(options).unwrap().return_value
            };
            let server = if is_v6 { "fd88::1" } else { "198.18.0.1" };
            let from = |group, member| {
                let source = address(group, member, is_v6);
                let frame = testbed::Frame::new(source, server.parse().unwrap());
                run(&frame.udp(4096, 53, b"question").unwrap())
            };
            for planned in &planned {
                assert_eq!(from(planned.group, planned.member), PASS, "{planned:?}");
            }
            for bot in 0..100 {
                assert_eq!(from(Group::Bots, bot), DROP, "{bot}");
                assert_eq!(from(Group::New, 1000 + bot), DROP, "{bot}");
            }
        }
    }
}
