//! Measures the kernel cost of limits by server names, by kind of packet. Needs root.

mod scene;

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::{
    connection::Ends,
    server_name::{FirstBytes, FlowRecord, Meaning, Records},
};
use limiter_datapath::kernel::SourceMaps;
use limiter_policy::policy::{CompiledPolicy, DnsName};
use testbed::Frame;

use self::scene::Scene;

/// The rest of a limit that refuses no packet.
const NEVER: &str = "cost: packets, burst: 1000000000, count: 1000000000, period: 1s";

/// The limits by names. Each policy has one.
const LIMITS: [(&str, &str); 2] = [
    (
        "a name",
        "id: total, match: {server-name: '*.shop.example'}",
    ),
    ("server-name", "id: server-name"),
];

const CLIENT: &str = "192.0.2.7";
const SERVER: &str = "198.51.100.1";

/// The number of first bytes that were read, and their value.
const BYTES_READ: u32 = 1500;
const BYTE: u8 = 7;

/// The clients' ports, the names they ask for, and how many first bytes must be equal when they are sent again.
const NAMED: [(u16, &str, u32); 3] = [
    (4001, "www.shop.example", BYTES_READ),
    (4002, "www.other.test", BYTES_READ),
    (4004, "www.shop.example", 0),
];

/// Enters the connections with their names.
fn record_flows(tables: &CompiledPolicy, maps: &SourceMaps) -> Result<()> {
    let [client, server] = [CLIENT.parse::<IpAddr>()?, SERVER.parse()?];
    let names = &tables.server_names;
    for (port, name, bytes_read) in NAMED {
        let asked = names.match_tcp_name(Some(&name.parse::<DnsName>()?));
        let flow = FlowRecord::new(1, 0).read(Meaning::new(names.number(), &asked));
        let flow = flow.with_first_bytes(bytes_read, Records::Read);
        let ends = Ends::new(&client.into(), port, &server.into(), 443);
        maps.server_names().add(ends, flow)?;
        let bytes = FirstBytes::new(&[BYTE; BYTES_READ as usize]);
        maps.server_names().add_first_bytes(ends, bytes)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    // The first limit counts the same packets as the others, but not by names.
    let plain = "id: total, match: {protocol: tcp, destination-port: 443}";
    let mut scenes = vec![Scene::new(
        "port 443",
        &format!(", Asked: {{{plain}, {NEVER}}}"),
        "",
    )?];
    for (name, limit) in LIMITS {
        let more = if name == "server-name" {
            "server-names: [shop.example]\n"
        } else {
            ""
        };
        let limit = format!(", Asked: {{{limit}, {NEVER}}}");
        scenes.push(Scene::with(name, &limit, more, record_flows)?);
    }
    let frame = Frame::new(CLIENT.parse()?, SERVER.parse()?);
    let data = |port, to| frame.tcp_data(port, to, (BYTES_READ, 1), &[BYTE; 100]);
    let again = |length| frame.tcp_data(NAMED[0].0, 443, (0, 1), &vec![BYTE; length]);
    let frames = [
        ("of the name", data(NAMED[0].0, 443)?),
        ("nothing to compare", data(NAMED[2].0, 443)?),
        ("without data", frame.tcp_ack(NAMED[0].0, 443, 1, 1)?),
        ("first bytes again, 100", again(100)?),
        ("first bytes again, 1400", again(1400)?),
        ("of another name", data(NAMED[1].0, 443)?),
        ("not noted", data(4003, 443)?),
        ("another port", data(4001, 8443)?),
    ];
    scene::compare(&scenes, &frames)
}
