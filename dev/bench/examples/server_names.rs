//! Measures what limits by server names add in the kernel, by kind of packet. Needs root.

mod scene;

use std::net::IpAddr;

use anyhow::Result;
use limiter_common::{
    connection::Ends,
    server_name::{Flow, Meaning},
};
use limiter_datapath::kernel::ReputationMaps;
use limiter_policy::policy::{CompiledPolicy, DnsName};
use testbed::Frame;

use self::scene::Scene;

/// How a limit goes on, which refuses no packet.
const NEVER: &str = "cost: packets, burst: 1000000000, count: 1000000000, period: 1s";

/// The limits by names, of which each policy has one.
const LIMITS: [(&str, &str); 2] = [
    (
        "a name",
        "id: total, match: {server-name: '*.shop.example'}",
    ),
    ("server-name", "id: server-name"),
];

const CLIENT: &str = "192.0.2.7";
const SERVER: &str = "198.51.100.1";

/// The ports of clients, and the names that they ask for.
const NAMED: [(u16, &str); 2] = [(4001, "www.shop.example"), (4002, "www.other.test")];

/// Notes the connections with their names.
fn note(tables: &CompiledPolicy, maps: &ReputationMaps) -> Result<()> {
    let [client, server] = [CLIENT.parse::<IpAddr>()?, SERVER.parse()?];
    let names = &tables.server_names;
    for (port, name) in NAMED {
        let asked = names.asked_by_tcp(Some(&name.parse::<DnsName>()?));
        let flow = Flow::new(1, 0).read(Meaning::new(names.number(), &asked));
        let ends = Ends::new(&client.into(), port, &server.into(), 443);
        maps.server_names().add(ends, flow)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    // The first counts what the others do, but not by names.
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
        scenes.push(Scene::with(name, &limit, more, note)?);
    }
    let frame = Frame::new(CLIENT.parse()?, SERVER.parse()?);
    let data = |port, to| frame.tcp_data(port, to, (1, 1), &[7; 100]);
    let frames = [
        ("of the name", data(NAMED[0].0, 443)?),
        ("of another name", data(NAMED[1].0, 443)?),
        ("not noted", data(4003, 443)?),
        ("another port", data(4001, 8443)?),
    ];
    scene::compare(&scenes, &frames)
}
