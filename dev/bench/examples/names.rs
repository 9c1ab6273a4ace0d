//! Measures the kernel cost of limits by DNS names, by kind of packet. Needs root, and Debian's
//! package `publicsuffix`.

mod scene;

use std::{fmt::Write as _, net::IpAddr};

use anyhow::{Context as _, Result};
use testbed::Frame;

use self::scene::Scene;

const ZONES: usize = 10_000;

/// How a limit goes on, which refuses no packet.
const NEVER: &str = "cost: packets, burst: 1000000000, count: 1000000000, period: 1s";

/// The limit of each policy. The first counts the same packets as the others, but without reading
/// names.
const LIMITS: [(&str, &str); 6] = [
    (
        "port 53",
        "id: total, match: {protocol: udp, destination-port: 53}",
    ),
    ("a flag", "id: total, match: {dns-rd: true}"),
    (
        "a name",
        "id: total, match: {dns-name: '*.z77.example', dns-type: A}",
    ),
    ("question", "id: question"),
    ("zone", "id: zone"),
    ("domain", "id: domain"),
];

/// Returns a query for the IPv4 address of a name.
fn query(name: &str) -> Result<Vec<u8>> {
    let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).context("a label is too long")?);
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    Ok(message)
}

fn main() -> Result<()> {
    let mut zones = String::from("zones: [");
    for number in 0..ZONES {
        write!(zones, "z{number}.example, ")?;
    }
    zones.push_str("]\n");
    let scenes = LIMITS.map(|(name, limit)| {
        let more = if name == "zone" { &zones } else { "" };
        Scene::new(name, &format!(", Asked: {{{limit}, {NEVER}}}"), more)
    });
    let scenes = scenes.into_iter().collect::<Result<Vec<_>>>()?;
    let addresses = ["192.0.2.7".parse::<IpAddr>()?, "198.51.100.1".parse()?];
    let frame = Frame::new(addresses[0], addresses[1]);
    let long = format!("{}.{}.www.z77.example", "a".repeat(63), "b".repeat(63));
    let frames = [
        (
            "www.z77.example",
            frame.udp(4321, 53, &query("www.z77.example")?)?,
        ),
        (
            "eight labels",
            frame.udp(4321, 53, &query("a.b.c.d.e.f.z77.example")?)?,
        ),
        ("a long name", frame.udp(4321, 53, &query(&long)?)?),
        (
            "www.other.co.uk",
            frame.udp(4321, 53, &query("www.other.co.uk")?)?,
        ),
        (
            "another domain",
            frame.udp(4321, 53, &query("www.other.test")?)?,
        ),
        ("another port", frame.udp(4321, 123, &[7; 48])?),
    ];
    scene::compare(&scenes, &frames)
}
