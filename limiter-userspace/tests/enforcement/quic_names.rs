//! Limits by server name on QUIC: flows count by the name in their clients' first datagrams, some of them
//! recorded from Chromium; and the effect of a flood of forged ones.

use std::{
    io::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use limiter_names::testing::{Hello, Initial, Version, crypto};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Load, Pair, RawSender, SERVER_INTERFACE};

use crate::pair;

/// The first that Chromium sent when it was told to talk to quic.example, in two datagrams.
const CHROMIUM: &[u8] = include_bytes!("../../../limiter-names/tests/names/hellos/chromium.quic");
const DATAGRAM: usize = 1250;

/// How many packets of a client pass by a limit that refills only after an hour.
const BURST: usize = 3;

/// A limit on a name.
fn limit(name: &str, rest: &str) -> String {
    format!(
        "limits: {{B: {{id: total, cost: packets, burst: {BURST}, count: 1, period: 1h, \
         match: {{protocol: [tcp, udp], server-name: {name}{rest}}}}}}}\n"
    )
}

fn start(pair: &Pair, configuration: &str, mode: &str) -> Result<Limiter> {
    pair.compute_checksums()?;
    let binary = Path::new(env!("CARGO_BIN_EXE_limiter"));
    let arguments = ["-i", SERVER_INTERFACE, "--mode", mode];
    Limiter::start(binary, &pair.server, configuration, &arguments)
}

/// A server that takes datagrams, and a client of it.
struct Scene<'p> {
    pair: &'p Pair,
    server: UdpSocket,
    address: SocketAddr,
}

impl<'p> Scene<'p> {
    fn new(pair: &'p Pair, address: &str) -> Result<Self> {
        let address = address.parse()?;
        let server = pair.server.enter(|| Ok(UdpSocket::bind(address)?))?;
        server.set_read_timeout(Some(Duration::from_millis(200)))?;
        Ok(Self {
            pair,
            server,
            address,
        })
    }

    /// Returns a client with a port of its own.
    fn client(&self) -> Result<UdpSocket> {
        let any: SocketAddr = if self.address.is_ipv4() {
            "0.0.0.0:0".parse()?
        } else {
            "[::]:0".parse()?
        };
        self.pair.client.enter(|| {
            let client = UdpSocket::bind(any)?;
            client.connect(self.address)?;
            Ok(client)
        })
    }

    /// Has a client send ten datagrams as they come after a handshake; returns how many arrive.
    fn send_ten(&self, client: &UdpSocket) -> Result<usize> {
        self.arrived();
        for _ in 0..10 {
            client.send(b"\x40 as if it were encrypted")?;
        }
        Ok(self.arrived())
    }

    /// Returns how many datagrams have arrived.
    fn arrived(&self) -> usize {
        let mut datagram = [0; 2048];
        let received = || self.server.recv(&mut datagram).ok();
        std::iter::from_fn(received).count()
    }
}

/// Waits until so many QUIC flows got names.
fn wait_for_names(limiter: &Limiter, named: u64) -> Result<()> {
    let is_so = || Ok(limiter.status()?["server_names"]["quic"]["named"] == named);
    crate::wait(is_so).with_context(|| format!("not {named} names"))
}

/// Returns the datagrams of a hello for a name: one if all fits, or two, with the name in the second.
fn hello(version: Version, name: &str, key_share: usize) -> Vec<Vec<u8>> {
    let message = Hello {
        name: Some(name.as_bytes()),
        applications: &[b"h3"],
        key_share,
        is_encrypted: false,
        ..Hello::NONE
    }
    .message();
    let parts = message.chunks(1000).enumerate();
    let datagrams = parts.map(|(part, bytes)| {
        let initial = Initial {
            version,
            keyed_by: name.as_bytes(),
            connection: name.as_bytes(),
            token: &[],
            number: u32::try_from(part).expect("few parts"),
        };
        initial.sealed(&crypto(1000 * part, bytes), 1200)
    });
    datagrams.collect()
}

#[test]
fn a_limit_holds_for_the_flows_of_its_name_alone() -> Result<()> {
    let pair = pair()?;
    for mode in ["native", "generic"] {
        let limiter = start(&pair, &limit("quic.example", ""), mode)?;
        let mut named = 0;
        for address in ["10.77.0.1:443", "[fd77::1]:443"] {
            let scene = Scene::new(&pair, address)?;
            let other = scene.client()?;
            for datagram in hello(Version::Two, "other.example", 1200) {
                other.send(&datagram)?;
            }
            named += 1;
            wait_for_names(&limiter, named)?;
            let counted = scene.client()?;
            ensure!(scene.send_ten(&counted)? == 10, "before the name is known");
            for datagram in CHROMIUM.chunks(DATAGRAM) {
                counted.send(datagram)?;
            }
            named += 1;
            wait_for_names(&limiter, named)?;
            // The bucket is the same for both families.
            let expected = if named == 2 { BURST } else { 0 };
            let arrived = scene.send_ten(&counted)?;
            ensure!(arrived == expected, "{mode} {address}: {arrived}");
            // A later hello of the client's, or of somebody else's in its name, changes nothing.
            for datagram in hello(Version::One, "other.example", 0) {
                counted.send(&datagram)?;
            }
            ensure!(scene.send_ten(&counted)? == 0);
            ensure!(scene.send_ten(&other)? == 10);
        }
        wait_for_names(&limiter, named)?;
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

#[test]
fn each_name_has_a_bucket_and_its_override() -> Result<()> {
    let pair = pair()?;
    let configuration = format!(
        "server-names: [a.example, b.example]\nlimits:\n  \
         Names: {{id: server-name, cost: packets, burst: {BURST}, count: 1, period: 1h, \
         match: {{protocol: udp}}}}\n  \
         Tcp: {{id: total, cost: packets, burst: 1, count: 1, period: 1h, \
         match: {{protocol: tcp, server-name: '*'}}}}\n\
         overrides: [{{Names: {{burst: 7, count: 1, period: 1h, ids: [b.example]}}}}]\n"
    );
    let limiter = start(&pair, &configuration, "native")?;
    let scene = Scene::new(&pair, "10.77.0.1:443")?;
    for (number, (name, expected)) in [
        ("www.a.example", BURST),
        ("b.example", 7),
        ("c.example", 10),
        ("a.example", 0),
    ]
    .into_iter()
    .enumerate()
    {
        let client = scene.client()?;
        for datagram in hello(Version::One, name, 1200).iter().rev() {
            client.send(datagram)?;
        }
        wait_for_names(&limiter, number as u64 + 1)?;
        let arrived = scene.send_ten(&client)?;
        ensure!(arrived == expected, "{name}: {arrived}");
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn a_flow_keeps_its_name_when_the_policy_changes() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, &limit("a.example", ""), "native")?;
    let scene = Scene::new(&pair, "10.77.0.1:443")?;
    let client = scene.client()?;
    client.send(&hello(Version::One, "b.example", 0)[0])?;
    wait_for_names(&limiter, 1)?;
    ensure!(scene.send_ten(&client)? == 10);
    limiter.configure(&limit("b.example", ""))?;
    limiter.show(&["reload"])?;
    // Until it is written down again: then one token is spent.
    crate::wait(|| {
        client.send(b"\x40 as if it were encrypted")?;
        Ok(limiter.status()?["limits"]["B"]["passed_packets"] == 1)
    })?;
    ensure!(scene.send_ten(&client)? == BURST - 1);
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Returns the hellos of forged sources.
fn forged() -> Result<Vec<Vec<u8>>> {
    let datagram = &hello(Version::One, "b.example", 0)[0];
    let server: IpAddr = "10.77.0.1".parse()?;
    let sources = (0..60_000).map(|number| Ipv4Addr::from(0x0b00_0000 + number).into());
    let frames = sources.map(|source| Frame::new(source, server).udp(4000, 443, datagram));
    frames.collect()
}

/// Connects to a web server and asks for a file by a name.
fn ask_by_tcp(pair: &Pair, name: &str) -> Result<TcpStream> {
    let address: SocketAddr = "10.77.0.1:80".parse()?;
    let mut stream = pair.client.enter(|| Ok(TcpStream::connect(address)?))?;
    write!(stream, "GET / HTTP/1.1\r\nHost: {name}\r\n\r\n")?;
    Ok(stream)
}

fn names_by_tcp(status: &Value) -> Result<u64> {
    status["server_names"]["named"].as_u64().context("no names")
}

/// Forged hellos take neither names from connections nor from flows that live, and are read within a bound.
#[test]
fn a_flood_of_forged_hellos_leaves_others_their_names() -> Result<()> {
    let pair = pair()?;
    let limiter = start(
        &pair,
        &limit("a.example", ", destination-port: [80, 443]"),
        "native",
    )?;
    let scene = Scene::new(&pair, "10.77.0.1:443")?;
    let web = pair
        .server
        .enter(|| Ok(TcpListener::bind("10.77.0.1:80")?))?;
    let client = scene.client()?;
    client.send(&hello(Version::One, "a.example", 0)[0])?;
    wait_for_names(&limiter, 1)?;
    ensure!(scene.send_ten(&client)? == BURST);

    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    let progress = sender.progress();
    let frames = forged()?;
    let began = Instant::now();
    let flood =
        thread::spawn(move || sender.send(Load::saturating(Duration::from_secs(30)), &frames));
    let mut connections = Vec::new();
    for _ in 0..20 {
        thread::sleep(Duration::from_millis(200));
        connections.push(ask_by_tcp(&pair, "c.example")?);
        client.send(b"\x40")?;
    }
    thread::sleep(Duration::from_millis(500));
    let status = limiter.status()?;
    progress.stop();
    let sent = flood.join().expect("the sender does not panic")?;
    let seconds = began.elapsed().as_secs() + 1;
    println!(
        "{} datagrams in {seconds} s: {:#}",
        sent.packets, status["server_names"]
    );
    ensure!(
        names_by_tcp(&status)? == connections.len() as u64,
        "{status:#}"
    );
    let quic = &status["server_names"]["quic"];
    let named = quic["named"].as_u64().context("no names")?;
    ensure!(named > 1 && named <= 10_000 * seconds + 1_001, "{named}");
    let lost = quic["datagrams_lost"].as_object().context("no object")?;
    ensure!(
        lost.values().filter_map(Value::as_u64).sum::<u64>() > 0,
        "{quic:#}"
    );
    // The flow is still counted by its name.
    ensure!(scene.send_ten(&client)? == 0);
    drop((web, connections));
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// At a port without a socket, forged datagrams name nothing.
#[test]
fn a_port_without_a_socket_has_no_flows() -> Result<()> {
    let pair = pair()?;
    let limiter = start(
        &pair,
        &limit("a.example", ", destination-port: [443, 8443]"),
        "native",
    )?;
    let scene = Scene::new(&pair, "10.77.0.1:443")?;
    let [client, server]: [IpAddr; 2] = ["10.77.0.2".parse()?, "10.77.0.1".parse()?];
    let datagram = &hello(Version::One, "a.example", 0)[0];
    let frame = |port| Frame::new(client, server).udp(4000, port, datagram);
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    sender.send_frames(&[frame(8443)?, frame(443)?])?;
    wait_for_names(&limiter, 1)?;
    thread::sleep(Duration::from_millis(200));
    wait_for_names(&limiter, 1)?;
    ensure!(scene.arrived() == 1);
    ensure!(limiter.stop()?.success());
    Ok(())
}
