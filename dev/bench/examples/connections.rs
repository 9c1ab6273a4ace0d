//! Measures the kernel cost of a limit on connections, by kind of packet. Needs root.

mod scene;

use std::net::IpAddr;

use anyhow::Result;
use testbed::Frame;

use self::scene::Scene;

/// The rest of each policy; empty for the first.
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

fn main() -> Result<()> {
    let scenes = POLICIES.map(|(name, limits)| Scene::new(name, limits, ""));
    let scenes = scenes.into_iter().collect::<Result<Vec<_>>>()?;
    let addresses = ["192.0.2.7".parse::<IpAddr>()?, "198.51.100.1".parse()?];
    let frame = Frame::new(addresses[0], addresses[1]);
    let frames = [
        ("SYN to 443, with room", frame.tcp_syn(4321, 443, 7)?),
        ("ACK to 443", frame.tcp_ack(4321, 443, 7, 8)?),
        ("ACK to another port", frame.tcp_ack(4321, 80, 7, 8)?),
        ("UDP", frame.udp(4321, 53, &[7; 30])?),
    ];
    scene::compare(&scenes, &frames)
}
