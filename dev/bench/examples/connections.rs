//! Measures what a limit on connections adds in the kernel, by kind of packet. Needs root.
//!
//! A test run repeats one frame, so all that it needs is in the cache: this shows instructions, not
//! cache misses. The least of some runs counts, since other processes use the machine, too.

use std::{net::IpAddr, time::Duration};

use anyhow::{Result, anyhow};
use comfy_table::{Table, presets};
use limiter_datapath::kernel::{
    Clocking, Instance, LogLevel, ReputationMaps, Settings, possible_cpus,
};
use limiter_policy::{
    config::{self, Buckets, Offenders},
    policy::CompiledPolicy,
};
use testbed::Frame;

/// Beside the limits on connections: a limit that charges each packet, and refuses none.
const PACKETS: &str = "PacketsPerIPAddress: {burst: 1000000000, count: 1000000000, period: 1s}";

/// What else a policy has; the first has nothing.
const POLICIES: [(&str, &str); 6] = [
    ("none", ""),
    (
        "packets to port 443",
        ", Web: {id: ipAddress, cost: packets, burst: 1000000000, count: 1000000000, period: 1s, \
         match: {protocol: tcp, destination-port: 443}}",
    ),
    (
        "packets of no connection",
        ", Web: {id: ipAddress, cost: packets, burst: 1000000000, count: 1000000000, period: 1s, \
         match: {state: none, destination-port: 443}}",
    ),
    (
        "per address, port 443",
        ", Web: {id: ipAddress, cost: connections, limit: 50, \
         match: {protocol: tcp, destination-port: 443}}",
    ),
    (
        "the same and all together",
        ", Web: {id: ipAddress, cost: connections, limit: 50, \
         match: {protocol: tcp, destination-port: 443}}, \
         All: {id: total, cost: connections, limit: 1000, \
         match: {protocol: tcp, destination-port: 443}}",
    ),
    (
        "all together with a queue",
        ", All: {id: total, cost: connections, limit: 1000, queue: {size: 256}, \
         match: {protocol: tcp, destination-port: 443}}",
    ),
];

const RUNS: u32 = 100_000;
const REPEATS: usize = 40;

/// The program with a policy.
struct Scene {
    instance: Instance,
    /// The instance's maps, which it does not keep.
    _maps: ReputationMaps,
}

impl Scene {
    fn new(limits: &str) -> Result<Self> {
        let text = format!("limits: {{{PACKETS}{limits}}}");
        let config = config::parse(&text, "policy").map_err(|errors| anyhow!("{errors}"))?;
        let tables = CompiledPolicy::new(&config.policy, possible_cpus())?;
        let settings = Settings::new(Buckets::default(), Offenders::default(), LogLevel::Off)?
            .sized_for(&tables);
        let mut instance = Instance::load(&tables, 0, settings, Clocking::Kernel)?;
        let maps = instance.take_reputation(settings)?;
        Ok(Self {
            instance,
            _maps: maps,
        })
    }
}

fn main() -> Result<()> {
    let scenes = POLICIES.map(|(_, limits)| Scene::new(limits));
    let scenes = scenes.into_iter().collect::<Result<Vec<_>>>()?;
    let addresses = ["192.0.2.7".parse::<IpAddr>()?, "198.51.100.1".parse()?];
    let frame = Frame::new(addresses[0], addresses[1]);
    let frames = [
        ("SYN to 443, with room", frame.tcp_syn(4321, 443, 7)?),
        ("ACK to 443", frame.tcp_ack(4321, 443, 7, 8)?),
        ("ACK to another port", frame.tcp_ack(4321, 80, 7, 8)?),
        ("UDP", frame.udp(4321, 53, &[7; 30])?),
    ];
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let names = POLICIES.map(|(name, _)| name.to_owned());
    table.set_header(
        [String::from("nanoseconds a packet")]
            .into_iter()
            .chain(names),
    );
    for (kind, frame) in frames {
        let mut least = vec![Duration::MAX; scenes.len()];
        // In turns, so that what else the machine does meets all.
        for _ in 0..REPEATS {
            for (least, scene) in least.iter_mut().zip(&scenes) {
                *least = (*least).min(scene.instance.hammer(&frame, RUNS)?);
            }
        }
        let costs: Vec<_> = least
            .iter()
            .map(|time| time.as_nanos() / u128::from(RUNS))
            .collect();
        let cells = costs.iter().enumerate().map(|(index, cost)| match index {
            0 => cost.to_string(),
            _ => format!("{cost} ({:+})", cost.cast_signed() - costs[0].cast_signed()),
        });
        table.add_row([kind.to_owned()].into_iter().chain(cells));
    }
    println!("{table}");
    Ok(())
}
