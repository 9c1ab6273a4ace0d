//! `limiter check` warns if a limit would count replies to the host's own queries.

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use testbed::{Limiter, Pair, SERVER_INTERFACE};

use crate::{BINARY, Scene, pair, succeed, wait_for};

/// The name server, in the client's namespace.
const NAME_SERVER: &str = "10.77.0.2";

/// How many replies the limit passes.
const BURST: usize = 3;

/// How many replies are sent.
const REPLIES: usize = 10;

fn configuration(more: &str) -> String {
    format!(
        "limits: {{Own: {{id: ipAddress, cost: packets, burst: {BURST}, count: 1, period: \
         1h{more}}}}}\n"
    )
}

/// Returns a UDP socket of the server that is connected to a peer.
fn asking(pair: &Pair, from: &str, peer: &str) -> Result<UdpSocket> {
    let [from, peer]: [SocketAddr; 2] = [from.parse()?, peer.parse()?];
    pair.server.enter(|| {
        let socket = Socket::new(Domain::for_address(from), Type::DGRAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&from.into())?;
        socket.connect(&peer.into())?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok(socket.into())
    })
}

/// Returns the output of `limiter check` for a configuration on the server: text, and JSON.
fn check(pair: &Pair, scene: &Scene, configuration: &str) -> Result<(String, Value)> {
    let file = scene.path("checked.yaml");
    fs::write(&file, configuration)?;
    let reported = |more: &[&str]| -> Result<String> {
        let mut command = pair.server.command(BINARY);
        let output = succeed(command.arg("check").args(more).arg(&file))?;
        Ok(String::from_utf8(output.stdout)?)
    };
    Ok((
        reported(&[])?,
        serde_json::from_str(&reported(&["--json"])?)?,
    ))
}

/// Returns an address's reported peers, as `PROTOCOL PORT`.
fn peers_of(reported: &Value, address: &str) -> Vec<String> {
    let peers = reported["counted_peers"].as_array().into_iter().flatten();
    let peers = peers.filter(|peer| peer["address"] == address);
    let shown = peers.map(|peer| {
        format!(
            "{} {}",
            peer["protocol"].as_str().unwrap_or_default(),
            peer["port"]
        )
    });
    shown.collect()
}

/// Lets the name server answer one question many times; returns how many replies arrive.
fn answered(pair: &Pair, socket: &UdpSocket) -> Result<usize> {
    let server = pair
        .client
        .enter(|| Ok(UdpSocket::bind((NAME_SERVER, 53))?))?;
    socket.send(b"a question")?;
    let (_, asker) = server.recv_from(&mut [0; 64])?;
    let received = pair.received()?;
    for _ in 0..REPLIES {
        server.send_to(b"an answer", asker)?;
    }
    wait_for(|| Ok(pair.received()? >= received + REPLIES as u64))?;
    let mut arrived = 0;
    while socket.recv(&mut [0; 64]).is_ok() {
        arrived += 1;
    }
    Ok(arrived)
}

#[test]
fn whose_replies_a_limit_counts() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let own = asking(&pair, "10.77.0.1:0", "10.77.0.2:53")?;
    // A server that connects a UDP socket to its client, from its service port.
    let _serving = pair.server.enter(|| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&"10.77.0.1:5000".parse::<SocketAddr>()?.into())?;
        Ok(socket)
    })?;
    let _client = asking(&pair, "10.77.0.1:5000", "10.77.0.2:40000")?;

    let (reported, json) = check(&pair, &scene, &configuration(""))?;
    ensure!(
        reported.contains("limits count the replies of the hosts that this host asks:\n"),
        "{reported}"
    );
    let line = "  10.77.0.2 (udp port 53): Own {burst: 3, count: 1, period: 1h} in packets\n";
    ensure!(reported.contains(line), "{reported}");
    assert_eq!(peers_of(&json, NAME_SERVER), ["udp 53"]);
    let excluding = configuration(", exclude: 10.77.0.2");
    for spared in [
        excluding.clone(),
        configuration(", mode: observe"),
        configuration(", match: {destination-port: 53}"),
    ] {
        let (reported, json) = check(&pair, &scene, &spared)?;
        ensure!(!reported.contains(NAME_SERVER), "{reported}");
        ensure!(peers_of(&json, NAME_SERVER).is_empty(), "{json}");
    }

    // A running limiter confirms the warning.
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let binary = Path::new(BINARY);
    let limiter = Limiter::start(binary, &pair.server, &configuration(""), &arguments)?;
    ensure!(answered(&pair, &own)? <= BURST);
    limiter.configure(&excluding)?;
    limiter.show(&["reload"])?;
    assert_eq!(answered(&pair, &own)?, REPLIES);
    limiter.stop()?;
    Ok(())
}

#[test]
fn many_peers_take_few_lines() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let peers =
        (1..=30).map(|last| asking(&pair, "10.77.0.1:0", &format!("10.77.0.{}:123", last + 1)));
    let _sockets = peers.collect::<Result<Vec<_>>>()?;
    let (reported, json) = check(&pair, &scene, &configuration(""))?;
    // The host's own name servers are included.
    let counted = json["counted_peers"].as_array().context("no peers")?.len();
    ensure!(counted >= 30, "{json}");
    ensure!(
        reported.contains(&format!("  and {} more\n", counted - 10)),
        "{reported}"
    );
    assert_eq!(
        reported
            .lines()
            .filter(|line| line.contains(" (udp port "))
            .count(),
        10
    );
    Ok(())
}

/// If limits also count the host's own connections, the warning includes TCP peers.
#[test]
fn by_tcp_where_the_policy_says_so() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let listener = |namespace: &testbed::Namespace, address: &str| {
        namespace.enter(|| Ok(std::net::TcpListener::bind(address)?))
    };
    let remote = listener(&pair.client, "10.77.0.2:443")?;
    let served = listener(&pair.server, "10.77.0.1:80")?;
    let connect = |namespace: &testbed::Namespace, address: &str| {
        namespace.enter(|| Ok(std::net::TcpStream::connect(address)?))
    };
    let _own = (connect(&pair.server, "10.77.0.2:443")?, remote.accept()?);
    let _client = (connect(&pair.client, "10.77.0.1:80")?, served.accept()?);
    let limited = format!("own-connections: limit\n{}", configuration(""));
    let (reported, json) = check(&pair, &scene, &limited)?;
    assert_eq!(peers_of(&json, NAME_SERVER), ["tcp 443"], "{reported}");
    let (_, json) = check(&pair, &scene, &configuration(""))?;
    assert_eq!(peers_of(&json, NAME_SERVER), [""; 0]);
    Ok(())
}
