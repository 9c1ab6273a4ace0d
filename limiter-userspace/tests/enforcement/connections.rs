//! Limits on open connections: clients connect, and the limit admits exactly as many as the network
//! stack has open.

mod destinations;
mod fast_open;
mod forged;
mod groups;
mod handshakes;
mod keys;
mod multipath;
mod others;
mod queue;
mod soak;
mod tracked;
mod turned_away;

use std::{
    io::Read as _,
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use socket2::{Domain, Protocol, Socket, Type};
use testbed::{Limiter, Namespace, Pair, PinDirectory, SERVER_INTERFACE};

use self::soak::kind::Kind;
pub(crate) use self::soak::stack_count;
use crate::{PATIENCE, pair, server_for, wait};

const PORT: u16 = 7001;

/// How many connections an address may have open.
const LIMIT: usize = 3;

/// Less than the second after which a refused client repeats its SYN.
const AT_ONCE: Duration = Duration::from_millis(700);

const CLIENT: &str = "10.77.0.2";
const CLIENT_V6: &str = "fd77:1:1::1";

fn policy(id: &str, more: &str) -> String {
    format!(
        "limits: {{Web: {{id: {id}, cost: connections, limit: {LIMIT}, match: {{protocol: tcp, \
         destination-port: {PORT}}}{more}}}}}\n"
    )
}

fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    start_with(pair, configuration, &["--mode", "generic"])
}

fn start_with(pair: &Pair, configuration: &str, more: &[&str]) -> Result<Limiter> {
    Limiter::start(
        Path::new(env!("CARGO_BIN_EXE_limiter")),
        &pair.server,
        configuration,
        &[&["-i", SERVER_INTERFACE][..], more].concat(),
    )
}

/// A server that accepts connections and keeps them open.
struct Server(TcpListener);

impl Server {
    fn new(namespace: &Namespace) -> Result<Self> {
        Self::at(namespace, PORT, None)
    }

    fn at(namespace: &Namespace, port: u16, protocol: Option<Protocol>) -> Result<Self> {
        namespace.enter(|| {
            let socket = Socket::new(Domain::IPV6, Type::STREAM, protocol)?;
            socket.set_only_v6(false)?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::new("::".parse()?, port).into())?;
            socket.listen(1024)?;
            // If the last ACK is refused, the client believes that its connection is open, but
            // there is nothing to accept.
            socket.set_read_timeout(Some(AT_ONCE))?;
            Ok(Self(socket.into()))
        })
    }

    fn accept(&self) -> Result<TcpStream> {
        Ok(self.0.accept()?.0)
    }
}

/// Connects from an address, with one SYN.
fn connect(pair: &Pair, from: &str) -> Result<TcpStream> {
    let server = SocketAddr::new(server_for(from.parse()?)?, PORT);
    connect_to(pair, from, server)
}

/// Connects from an address to a server, with one SYN.
fn connect_to(pair: &Pair, from: &str, server: SocketAddr) -> Result<TcpStream> {
    let from: IpAddr = from.parse()?;
    pair.client.enter(|| {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from, 0).into())?;
        socket.connect_timeout(&server.into(), AT_ONCE)?;
        Ok(TcpStream::from(socket))
    })
}

/// Opens as many connections as the limit admits; returns both ends of each.
fn fill(pair: &Pair, server: &Server, from: &str) -> Result<Vec<(TcpStream, TcpStream)>> {
    let mut open = Vec::new();
    for number in 0..LIMIT {
        let client = connect(pair, from).with_context(|| format!("connection {number}"))?;
        open.push((client, server.accept()?));
    }
    Ok(open)
}

fn assert_full(pair: &Pair, from: &str) -> Result<()> {
    ensure!(
        connect(pair, from).is_err(),
        "one more from {from} is let in"
    );
    Ok(())
}

/// Fails unless one more connection is soon admitted.
fn assert_room(pair: &Pair, server: &Server, from: &str) -> Result<(TcpStream, TcpStream)> {
    let end = Instant::now() + PATIENCE;
    loop {
        let opened = connect(pair, from).and_then(|client| Ok((client, server.accept()?)));
        match opened {
            Ok(open) => return Ok(open),
            Err(error) if Instant::now() > end => bail!("no room for {from}: {error}"),
            Err(_) => {}
        }
    }
}

fn counted(limiter: &Limiter) -> Result<u64> {
    let status = limiter.status()?;
    let counted = status["connections"]["counted"].as_u64();
    let limits = status["limits"].as_object().context("no limits")?;
    for (name, limit) in limits {
        ensure!(limit["open"].is_u64(), "{name}: {status}");
    }
    counted.with_context(|| format!("nothing is counted: {status}"))
}

/// Fails unless the limiter soon counts this many.
fn assert_counted(limiter: &Limiter, expected: u64) -> Result<()> {
    let is_so = wait(|| Ok(counted(limiter)? == expected));
    is_so.with_context(|| format!("{:?} are counted, not {expected}", counted(limiter)))
}

#[test]
fn an_address_has_only_so_many_open() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("ipAddress", ""))?;
    for from in [CLIENT, CLIENT_V6] {
        let open = fill(&pair, &server, from)?;
        assert_full(&pair, from)?;
        drop(open);
        assert_room(&pair, &server, from)?;
    }
    // Other addresses are not affected.
    let _open = fill(&pair, &server, CLIENT)?;
    assert_full(&pair, CLIENT)?;
    connect(&pair, "10.77.0.3")?;
    let status = limiter.status()?;
    let dropped = status["reasons"]["too_many_connections"].as_u64();
    ensure!(dropped >= Some(3), "{status}");
    ensure!(status["connections"]["uncounted"] == 0, "{status}");
    ensure!(status["connections"]["error"].is_null(), "{status}");
    let explained = limiter.explain(CLIENT)?;
    let limit = &explained["limits"][0];
    ensure!(limit["connections"] == LIMIT, "{explained}");
    ensure!(limit["remaining"] == 0, "{explained}");
    Ok(())
}

#[test]
fn all_together_have_only_so_many_open() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let _limiter = start(&pair, &policy("total", ""))?;
    let _open = fill(&pair, &server, CLIENT)?;
    assert_full(&pair, CLIENT_V6)?;
    Ok(())
}

#[test]
fn overrides_lists_and_observing_work_as_for_other_limits() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let overridden = "overrides: {Web:10.77.0.3: {limit: 1}}\n";
    let limits = policy("ipAddress", ", exclude: 10.78.0.2");
    let limiter = start(&pair, &format!("{limits}{overridden}"))?;
    let _one = (connect(&pair, "10.77.0.3")?, server.accept()?);
    assert_full(&pair, "10.77.0.3")?;
    let mut excluded = Vec::new();
    for _ in 0..2 * LIMIT {
        excluded.push((connect(&pair, "10.78.0.2")?, server.accept()?));
    }
    assert_counted(&limiter, 1)?;

    limiter.configure(&policy("ipAddress", ", mode: observe"))?;
    limiter.show(&["reload"])?;
    let _open = fill(&pair, &server, CLIENT)?;
    let _more = (connect(&pair, CLIENT)?, server.accept()?);
    let status = limiter.status()?;
    ensure!(
        status["limits"]["Web"]["would_drop_packets"] == 1,
        "{status}"
    );
    Ok(())
}

/// Half-closed connections hold their slots. Every way to end one gives the slot back.
#[test]
fn each_end_gives_the_slot_back() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let limiter = start(&pair, &policy("ipAddress", ""))?;
    let mut open = fill(&pair, &server, CLIENT)?;

    // The client has sent all of its data.
    let (mut client, mut serving) = open.pop().context("it is open")?;
    client.shutdown(Shutdown::Write)?;
    ensure!(serving.read(&mut [0])? == 0, "the server sees the end");
    assert_full(&pair, CLIENT)?;
    drop(serving);
    ensure!(client.read(&mut [0])? == 0, "the client sees the end");
    drop(client);
    open.push(assert_room(&pair, &server, CLIENT)?);
    assert_full(&pair, CLIENT)?;

    // The server closes first, and waits in TIME_WAIT.
    let (client, serving) = open.pop().context("it is open")?;
    drop(serving);
    drop(client);
    open.push(assert_room(&pair, &server, CLIENT)?);
    assert_full(&pair, CLIENT)?;

    // Either end may reset the connection.
    for is_client in [true, false] {
        let (client, serving) = open.pop().context("it is open")?;
        let (resets, other) = if is_client {
            (client, serving)
        } else {
            (serving, client)
        };
        Socket::from(resets).set_linger(Some(Duration::ZERO))?;
        open.push(assert_room(&pair, &server, CLIENT)?);
        drop(other);
        assert_full(&pair, CLIENT)?;
    }
    drop(open);
    assert_counted(&limiter, 0)
}

/// A server that holds connections in its own process.
fn holder(namespace: &Namespace) -> Result<Child> {
    let script = format!(
        "import socket,time\ns=socket.create_server(('',{PORT}),backlog=64)\nprint('up',flush=True)\n\
         held=[]\nwhile True: held.append(s.accept())\n"
    );
    let mut command: Command = namespace.command("python3");
    let mut child = command
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut up = [0; 3];
    child
        .stdout
        .as_mut()
        .context("it writes")?
        .read_exact(&mut up)?;
    Ok(child)
}

#[test]
fn a_killed_server_gives_the_slots_back() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, &policy("ipAddress", ""))?;
    let mut server = holder(&pair.server)?;
    let mut open = Vec::new();
    for _ in 0..LIMIT {
        open.push(connect(&pair, CLIENT)?);
    }
    assert_counted(&limiter, LIMIT as u64)?;
    server.kill()?;
    server.wait()?;
    drop(open);
    assert_counted(&limiter, 0)
}

/// Connections older than the limit count, and their ends, too.
#[test]
fn connections_from_before_count() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let mut before = fill(&pair, &server, CLIENT)?;
    let limiter = start(&pair, &policy("ipAddress", ""))?;
    assert_counted(&limiter, LIMIT as u64)?;
    assert_full(&pair, CLIENT)?;
    drop(before.pop());
    before.push(assert_room(&pair, &server, CLIENT)?);
    assert_full(&pair, CLIENT)?;
    drop(before);
    assert_counted(&limiter, 0)
}

/// A reload recounts by the new limits. A restarted daemon counts the connections that were opened
/// and closed without it.
#[test]
fn reloads_and_restarts_count_anew() -> Result<()> {
    let pair = pair()?;
    let server = Server::new(&pair.server)?;
    let pins = PinDirectory::new()?;
    let pinned = pins.argument();
    let mut limiter = start_with(&pair, &policy("ipAddress", ""), &[&pinned])?;
    let mut open = fill(&pair, &server, CLIENT)?;
    assert_full(&pair, CLIENT)?;

    limiter.configure(&policy("total", ""))?;
    limiter.show(&["reload"])?;
    let end = Instant::now() + PATIENCE;
    while connect(&pair, CLIENT_V6).is_ok() {
        let _ = server.accept();
        ensure!(
            Instant::now() < end,
            "what was open is not counted by the new limit"
        );
    }
    limiter.configure(&policy("ipAddress", ""))?;
    limiter.show(&["reload"])?;
    let end = Instant::now() + PATIENCE;
    assert_room(&pair, &server, CLIENT_V6)?;
    // Wait for the recount, because after a kill no daemon would make it.
    while let Ok(client) = connect(&pair, CLIENT) {
        drop((client, server.accept()));
        ensure!(Instant::now() < end, "what was open is not counted anew");
    }
    // A connection that closes during a poll is subtracted two polls later.
    assert_counted(&limiter, LIMIT as u64)?;

    limiter.kill()?;
    // The pinned programs go on without a daemon.
    assert_full(&pair, CLIENT)?;
    drop(open.pop());
    open.push(assert_room(&pair, &server, CLIENT)?);
    assert_full(&pair, CLIENT)?;
    limiter.restart()?;
    assert_counted(&limiter, LIMIT as u64)?;
    assert_full(&pair, CLIENT)?;
    drop(open);
    assert_counted(&limiter, 0)
}
