//! Answers to refused packets, as clients' sockets receive them.

use std::{
    io::ErrorKind,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::Path,
};

use anyhow::{Context as _, Result, bail, ensure};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{PATIENCE, connections::stack_count, pair, server_for, wait};

const PORT: u16 = 7000;

/// A DNS query of `example.com` for its address, with room for an ICMPv6 error's quote.
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x07example\x03com\0\0\x01\0\x01\
                       \0\0\x29\x04\xd0\0\0\0\0\0\0";

/// The answer's header and question.
const TRUNCATED: &[u8] = b"\x12\x34\x83\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01";

/// The limit has one token per hour, already spent. A veth pair leaves checksums to be computed; in
/// native mode it sends frames back only to a peer with a program.
fn start(pair: &Pair, deny: &str) -> Result<Limiter> {
    pair.compute_checksums()?;
    let configuration = format!(
        "limits: {{All: {{id: total, cost: packets, match: {{destination-port: {PORT}}}, burst: 1, \
         count: 1, period: 1h, deny: {deny}}}}}"
    );
    let limiter = Limiter::start(
        Path::new(env!("CARGO_BIN_EXE_limiter")),
        &pair.server,
        &configuration,
        &["-i", SERVER_INTERFACE, "--mode", "generic"],
    )?;
    let spent = client(pair, "10.77.0.2".parse()?)?;
    spent.send(b"x")?;
    Ok(limiter)
}

/// Returns a client's UDP socket, connected to the server.
fn client(pair: &Pair, address: IpAddr) -> Result<UdpSocket> {
    let server = SocketAddr::new(server_for(address)?, PORT);
    let socket = pair
        .client
        .enter(|| Ok(UdpSocket::bind(SocketAddr::new(address, 0))?))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

fn clients() -> Result<[IpAddr; 2]> {
    Ok(["10.77.0.2".parse()?, "fd77:1:1::1".parse()?])
}

/// Returns how many answers of a kind the limiter has sent.
fn sent(limiter: &Limiter, answer: &str) -> Result<u64> {
    let status = limiter.status()?;
    status["limits"]["All"]["answers"][answer]
        .as_u64()
        .context("a count")
}

#[test]
fn a_resolver_is_told_to_come_over_tcp() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, "truncate")?;
    for address in clients()? {
        let socket = client(&pair, address)?;
        socket.send(QUERY)?;
        let mut answer = [0; 512];
        let length = socket.recv(&mut answer).context("no answer")?;
        assert_eq!(answer[..length], *TRUNCATED);
    }
    assert_eq!(sent(&limiter, "truncate")?, 2);
    let reported = limiter.show(&["status"])?;
    ensure!(
        reported.contains("All: answered 2 truncate\n"),
        "{reported}"
    );
    let explanation = limiter.explain("10.77.0.2")?;
    let limit = &explanation["limits"][0];
    ensure!(limit["answer"] == "truncate", "{explanation:#}");
    let reported = limiter.show(&["explain", "10.77.0.2"])?;
    let line = "All: refused packets are answered: truncate\n";
    ensure!(reported.contains(line), "{reported}");
    assert!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn a_client_is_refused_at_once() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, "reset")?;
    for address in clients()? {
        let server = SocketAddr::new(server_for(address)?, PORT);
        // Without the limiter, this listener would accept.
        let _listener = pair.server.enter(|| Ok(TcpListener::bind(server)?))?;
        let connected = pair
            .client
            .enter(|| Ok(TcpStream::connect_timeout(&server, PATIENCE)))?;
        match connected {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            other => bail!("{other:?}"),
        }
    }
    // Refused at the first SYN.
    assert_eq!(stack_count(&pair.client, "TCPSynRetrans")?, 0);
    assert!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn a_socket_reports_what_is_prohibited() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair, "prohibited")?;
    for address in clients()? {
        let socket = client(&pair, address)?;
        socket.send(QUERY)?;
        let error = socket.recv(&mut [0; 512]).err().context("no error")?;
        // Linux maps the two ICMP messages to these errors.
        let expected = if address.is_ipv4() {
            ErrorKind::HostUnreachable
        } else {
            ErrorKind::PermissionDenied
        };
        assert_eq!(error.kind(), expected, "{error}");
    }
    assert!(limiter.stop()?.success());
    Ok(())
}

/// A promiscuous interface, such as a bridge's port, also receives frames addressed to other hosts.
#[test]
fn nothing_is_answered_in_another_hosts_name() -> Result<()> {
    const OTHER: &str = "02:00:00:00:00:77";
    const UPPER: &str = "02:00:00:00:00:78";
    let pair = pair()?;
    let set = |settings: &str| {
        pair.server
            .ip_batch(&format!("link set {SERVER_INTERFACE} {settings}\n"))
    };
    set("promisc on")?;
    let limiter = start(&pair, "truncate")?;
    let sender = RawSender::new(&pair.client, CLIENT_INTERFACE)?;
    let dropped = || -> Result<u64> {
        let status = limiter.status()?;
        status["limits"]["All"]["dropped_packets"]
            .as_u64()
            .context("a count")
    };
    let answers_to = |address: &str| -> Result<u64> {
        let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?);
        let mut frame = frame.udp(5353, PORT, QUERY)?;
        for (byte, text) in frame.iter_mut().zip(address.split(':')) {
            *byte = u8::from_str_radix(text, 16)?;
        }
        let (before, answered) = (dropped()?, sent(&limiter, "truncate")?);
        sender.send_frames(&[frame])?;
        wait(|| Ok(dropped()? > before))?;
        Ok(sent(&limiter, "truncate")? - answered)
    };
    assert_eq!(answers_to("02:00:00:00:00:02")?, 1);
    assert_eq!(answers_to(OTHER)?, 0);
    // A device above the interface has its own MAC address.
    pair.server.ip_batch(&format!(
        "link add link {SERVER_INTERFACE} name upper0 address {UPPER} type macvlan mode bridge\n\
         link set upper0 up\n"
    ))?;
    wait(|| Ok(answers_to(UPPER)? == 1))?;
    assert_eq!(answers_to(OTHER)?, 0);
    // The MAC address may change.
    set(&format!("address {OTHER}"))?;
    wait(|| Ok(answers_to(OTHER)? == 1))?;
    assert_eq!(answers_to("02:00:00:00:00:02")?, 0);
    ensure!(limiter.stop()?.success());
    Ok(())
}
