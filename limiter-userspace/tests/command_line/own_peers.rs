//! `limiter check` on a machine that sends queries to peers, with limits that count their answers.

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

/// How many answers the limit lets through.
const BURST: usize = 3;

/// How many come.
const ANSWERS: usize = 10;

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

/// Returns the report of `limiter check` about a configuration on the server, for people and as JSON.
fn check(pair: &Pair, scene: &Scene, configuration: &str) -> Result<(String, Value)> {
    let file = scene.path("checked.yaml");
    fs::write(&file, configuration)?;
    let told = |more: &[&str]| -> Result<String> {
        let mut command = pair.server.command(BINARY);
        let output = succeed(command.arg("check").args(more).arg(&file))?;
        Ok(String::from_utf8(output.stdout)?)
    };
    Ok((told(&[])?, serde_json::from_str(&told(&["--json"])?)?))
}

/// Returns the peers of an address that were told, as `PROTOCOL PORT`.
fn peers_of(told: &Value, address: &str) -> Vec<String> {
    let peers = told["counted_peers"].as_array().into_iter().flatten();
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

/// Has the name server answer a question many times; returns how many answers arrive.
fn answered(pair: &Pair, socket: &UdpSocket) -> Result<usize> {
    let server = pair
        .client
        .enter(|| Ok(UdpSocket::bind((NAME_SERVER, 53))?))?;
    socket.send(b"a question")?;
    let (_, asker) = server.recv_from(&mut [0; 64])?;
    let received = pair.received()?;
    for _ in 0..ANSWERS {
        server.send_to(b"an answer", asker)?;
    }
    wait_for(|| Ok(pair.received()? >= received + ANSWERS as u64))?;
    let mut arrived = 0;
    while socket.recv(&mut [0; 64]).is_ok() {
        arrived += 1;
    }
    Ok(arrived)
}

#[test]
fn whose_answers_a_limit_counts() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let own = asking(&pair, "10.77.0.1:0", "10.77.0.2:53")?;
    // A server that connects a socket to its client, at the port that it serves.
    let _serving = pair.server.enter(|| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&"10.77.0.1:5000".parse::<SocketAddr>()?.into())?;
        Ok(socket)
    })?;
    let _client = asking(&pair, "10.77.0.1:5000", "10.77.0.2:40000")?;

    let (told, json) = check(&pair, &scene, &configuration(""))?;
    ensure!(
        told.contains("limits count the answers of the hosts that this host asks:\n"),
        "{told}"
    );
    let line = "  10.77.0.2 (udp port 53): Own {burst: 3, count: 1, period: 1h} in packets\n";
    ensure!(told.contains(line), "{told}");
    assert_eq!(peers_of(&json, NAME_SERVER), ["udp 53"]);
    let excluding = configuration(", exclude: 10.77.0.2");
    for spared in [
        excluding.clone(),
        configuration(", mode: observe"),
        configuration(", match: {destination-port: 53}"),
    ] {
        let (told, json) = check(&pair, &scene, &spared)?;
        ensure!(!told.contains(NAME_SERVER), "{told}");
        ensure!(peers_of(&json, NAME_SERVER).is_empty(), "{json}");
    }

    // It is as it was told.
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let binary = Path::new(BINARY);
    let limiter = Limiter::start(binary, &pair.server, &configuration(""), &arguments)?;
    ensure!(answered(&pair, &own)? <= BURST);
    limiter.configure(&excluding)?;
    limiter.show(&["reload"])?;
    assert_eq!(answered(&pair, &own)?, ANSWERS);
    limiter.stop()?;
    Ok(())
}

#[test]
fn many_peers_take_few_lines() -> Result<()> {
    let (scene, pair) = (Scene::new()?, pair()?);
    let peers =
        (1..=30).map(|last| asking(&pair, "10.77.0.1:0", &format!("10.77.0.{}:123", last + 1)));
    let _sockets = peers.collect::<Result<Vec<_>>>()?;
    let (told, json) = check(&pair, &scene, &configuration(""))?;
    // The machine's own name servers are among them.
    let counted = json["counted_peers"].as_array().context("no peers")?.len();
    ensure!(counted >= 30, "{json}");
    ensure!(
        told.contains(&format!("  and {} more\n", counted - 10)),
        "{told}"
    );
    assert_eq!(
        told.lines()
            .filter(|line| line.contains(" (udp port "))
            .count(),
        10
    );
    Ok(())
}

/// Where its own connections are limited, queries over TCP count as well.
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
    let (told, json) = check(&pair, &scene, &limited)?;
    assert_eq!(peers_of(&json, NAME_SERVER), ["tcp 443"], "{told}");
    let (_, json) = check(&pair, &scene, &configuration(""))?;
    assert_eq!(peers_of(&json, NAME_SERVER), [""; 0]);
    Ok(())
}
