//! A client with its own network stack that tries to keep its connection from counting by name.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use limiter_names::testing::{Hello, records};
use nix::sys::socket::{setsockopt, sockopt::TcpFastOpenConnect};
use socket2::{Domain, Protocol, Socket, Type};
use testbed::Limiter;

use super::{
    own_client::{By, Connection, fragments, policy, reason, server, server_with},
    server_names, start,
};
use crate::{pair, syn_cookies::set, wait};

/// Longer than data is held if the daemon does not read the connection's name.
const LONG: Duration = Duration::from_millis(1500);

/// More segments than the limiter reads of a connection, even if the daemon processes some meanwhile.
const MANY: usize = 40;

/// How a client hides the requested name.
#[derive(Clone, Copy, Debug)]
enum Hides {
    /// In more segments than are read, all at once.
    InPieces,
    /// The same, after the first byte and a pause.
    InPiecesLater,
    /// Behind segments with wrong checksums, which the server drops, and a pause.
    BehindDamaged,
    /// Behind many copies of the first byte, and a pause.
    BehindRepeated,
    /// Behind a byte past the end of the read range, and a pause.
    BehindFar,
    /// Behind a byte before the first one, and a pause.
    BehindProbe,
}

impl Hides {
    const ALL: [Self; 6] = [
        Self::InPieces,
        Self::InPiecesLater,
        Self::BehindDamaged,
        Self::BehindRepeated,
        Self::BehindFar,
        Self::BehindProbe,
    ];

    /// Sends segments that hide the name, and nearly all of `bytes`. Returns the number of segments.
    fn send(self, client: &Connection<'_>, bytes: &[u8]) -> Result<usize> {
        let pieces =
            |position| client.segments(position, &bytes[position..], bytes.len() / MANY, false);
        let first = client.segments(0, &bytes[..1], 1, false)?;
        let (before, pieces) = match self {
            Self::InPieces => (Vec::new(), pieces(0)?),
            Self::InPiecesLater => (first, pieces(1)?),
            Self::BehindDamaged => {
                let mut damaged = first.concat();
                damaged[TCP_CHECKSUM] ^= 0x5a;
                (vec![damaged; MANY], pieces(0)?)
            }
            Self::BehindRepeated => (vec![first.concat(); MANY], pieces(0)?),
            Self::BehindFar => (client.segments(5000, b"x", 1, false)?, pieces(0)?),
            Self::BehindProbe => (vec![client.probe()?], pieces(0)?),
        };
        if !before.is_empty() {
            client.send(&before)?;
            thread::sleep(LONG);
        }
        client.send(&pieces)?;
        Ok(before.len() + pieces.len())
    }
}

/// The checksum's offset, after the headers of Ethernet and IPv4.
const TCP_CHECKSUM: usize = 14 + 20 + 16;

fn counted(limiter: &Limiter) -> Result<u64> {
    let [passed, dropped] = server_names::counted(limiter, "B")?;
    Ok(passed + dropped)
}

#[test]
fn a_client_that_hides_its_name_is_not_served() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for mode in ["native", "generic"] {
        let limiter = start(&pair, &policy("hold"), mode)?;
        limiter.take_precedence()?;
        for by in [By::Http, By::Tls] {
            let bytes = by.ask("b.example");
            let before = reason(&limiter, "name_awaited")?;
            let hide = |hides: Hides| {
                let client = Connection::new(&pair, by)?;
                let sent = hides.send(&client, &bytes)?;
                anyhow::Ok((client, sent))
            };
            let hidden = in_turn(Hides::ALL, hide)?;
            // The network stack's own segment with the whole name comes after these.
            let sent: usize = hidden.iter().map(|(_, sent)| sent).sum();
            wait(|| Ok(reason(&limiter, "name_awaited")? >= before + sent as u64))?;
            let answered = in_turn(hidden, |(mut client, _)| client.is_answered(&bytes))?;
            ensure!(!answered.contains(&true), "{mode} {by:?}: {answered:?}");
        }
        ensure!(counted(&limiter)? == 0, "{mode}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Runs `act` on all values at the same time; returns the results in order.
fn in_turn<V: Send, R: Send>(
    values: impl IntoIterator<Item = V>,
    act: impl Fn(V) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let act = &act;
    thread::scope(|scope| {
        let threads = values
            .into_iter()
            .map(|value| scope.spawn(move || act(value)));
        let threads: Vec<_> = threads.collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"));
        results.collect()
    })
}

/// The server does not read urgent data with the rest of the stream.
#[test]
fn urgent_data_makes_no_other_name_of_the_one_that_is_read() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server_with(&pair, "add_header X-Name $host;")?;
    let ask = || -> Result<Vec<u8>> {
        let mut client = Connection::new(&pair, By::Http)?;
        client.ask(b"GET /small HTTP/1.1\r\nHost: b")?;
        client.urge(b'x')?;
        client.request(b".example\r\n\r\n")
    };
    // If urgent data is there at the server's first read, the server stops before it.
    wait(|| Ok(String::from_utf8(ask()?)?.contains("X-Name: b.example")))?;
    for until_known in ["hold", "pass"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        let response = ask()?;
        ensure!(response.is_empty(), "{until_known}: {response:?}");
        ensure!(reason(&limiter, "name_contradicted")? > 0, "{until_known}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// A server may place multipath TCP's data elsewhere than where it arrives. A client of a server without it uses plain
/// TCP.
#[test]
fn data_of_multipath_tcp_does_not_reach_a_server_that_takes_it() -> Result<()> {
    let pair = pair()?;
    let multipath = Protocol::from(libc::IPPROTO_MPTCP);
    let request = By::Http.ask("b.example");
    let address: SocketAddr = "10.77.0.1:80".parse()?;
    for until_known in ["pass", "hold"] {
        for protocol in [multipath, Protocol::TCP] {
            let server = pair.server.enter(|| {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
                socket.set_reuse_address(true)?;
                socket.bind(&address.into())?;
                socket.listen(1)?;
                Ok(socket)
            })?;
            let is_heard = || -> Result<bool> {
                let mut client = pair.client.enter(|| {
                    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(multipath))?;
                    socket.connect(&address.into())?;
                    Ok(TcpStream::from(socket))
                })?;
                let (serving, _) = server.accept()?;
                serving.set_read_timeout(Some(LONG))?;
                client.write_all(&request)?;
                Ok(TcpStream::from(serving).read(&mut [0; 1024]).is_ok())
            };
            ensure!(is_heard()?, "without a limiter");
            let limiter = start(&pair, &policy(until_known), "native")?;
            let is_plain = protocol == Protocol::TCP;
            ensure!(is_heard()? == is_plain, "{until_known} {protocol:?}");
            let contradicted = reason(&limiter, "name_contradicted")?;
            ensure!((contradicted > 0) != is_plain, "{until_known}");
            ensure!(limiter.stop()?.success());
        }
    }
    Ok(())
}

/// A server with TCP Fast Open reads the data of a SYN. If it is dropped, the client sends a SYN without data.
#[test]
fn a_request_in_the_first_segment_is_held_and_counted() -> Result<()> {
    let pair = pair()?;
    // Without cookies: data in every SYN, for every newly listening socket.
    set(&pair.client, "tcp_fastopen", "5")?;
    set(&pair.server, "tcp_fastopen", "1539")?;
    let (_server, _directory) = server(&pair)?;
    let request = By::Http.ask("b.example");
    for until_known in ["pass", "hold"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        let before = counted(&limiter)?;
        let mut client = pair.client.enter(|| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            setsockopt(&socket, TcpFastOpenConnect, &true)?;
            socket.set_read_timeout(Some(3 * LONG))?;
            socket.connect(&SocketAddr::new("10.77.0.1".parse()?, 80).into())?;
            Ok(TcpStream::from(socket))
        })?;
        client.write_all(&request)?;
        let mut response = [0; 1024];
        ensure!(client.read(&mut response)? > 0, "{until_known}");
        // Some of its packets come a little later.
        if until_known == "hold" {
            wait(|| Ok(counted(&limiter)? > before))?;
            ensure!(reason(&limiter, "name_awaited")? > 0);
        } else {
            ensure!(counted(&limiter)? == before, "it is counted by no name");
        }
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Even if the hello takes several segments and comes slowly.
#[test]
fn whoever_says_its_name_in_several_segments_is_served_and_counted() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let limiter = start(&pair, &policy("hold"), "native")?;
    for by in [By::Http, By::Tls] {
        let before = counted(&limiter)?;
        let bytes = by.ask("b.example");
        let mut client = Connection::new(&pair, by)?;
        let segments = client.segments(0, &bytes, bytes.len().div_ceil(10), false)?;
        let (first, others) = segments.split_at(5);
        client.send(first)?;
        thread::sleep(LONG);
        client.send(others)?;
        ensure!(client.is_answered(&bytes)?, "{by:?}");
        ensure!(counted(&limiter)? > before, "{by:?}");
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Returns first bytes with the name inside the read range, or behind it.
fn long(by: By, is_behind: bool) -> Vec<u8> {
    const LONG: usize = 4200;
    let padding = "x".repeat(LONG);
    match (by, is_behind) {
        (By::Http, true) => format!("GET /{padding} HTTP/1.1\r\nHost: b.example\r\n\r\n").into(),
        (By::Http, false) => {
            format!("GET /small HTTP/1.1\r\nHost: b.example\r\nCookie: {padding}\r\n\r\n").into()
        }
        (By::Tls, _) => {
            let application = [b'x'; LONG / 20];
            let applications = [&application[..]; 20];
            let hello = Hello {
                name: Some(b"b.example"),
                applications: if is_behind { &[] } else { &applications },
                key_share: if is_behind { LONG } else { 32 },
                is_encrypted: false,
                ..Hello::NONE
            };
            records(&hello.message(), 1 << 14)
        }
    }
}

/// Servers read hellos and requests of any length, so the name may be in the unread part.
#[test]
fn a_name_behind_the_bytes_that_are_read_does_not_reach_the_server() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for until_known in ["hold", "pass"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        limiter.take_precedence()?;
        // A served connection's last packets are counted a little later; wait for them.
        for is_behind in [true, false] {
            for by in [By::Http, By::Tls] {
                let before = counted(&limiter)?;
                let is_answered = Connection::new(&pair, by)?.is_answered(&long(by, is_behind))?;
                let is_counted = counted(&limiter)? > before;
                println!("{until_known} {by:?} {is_behind}: {is_answered} {is_counted}");
                // If a hello's end is not read, a second hello would go unnoticed.
                let is_held = is_behind || matches!(by, By::Tls);
                ensure!(is_answered == (until_known == "pass" || !is_held));
                ensure!(is_counted != is_behind || until_known == "pass");
            }
        }
        // If data passes, the server may close the connection before its data is read.
        if until_known == "hold" {
            wait(|| {
                let status = limiter.status()?;
                Ok(status["server_names"]["nameless"]["too-long"] == 2)
            })?;
        }
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Requests that no standard allows but nginx accepts, except the hello with an alert between its records and the two
/// hosts.
#[test]
fn what_a_lenient_server_takes_does_not_reach_it() -> Result<()> {
    const REQUESTS: [&str; 6] = [
        "GET  /small HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "GET http://b.example/small\r\n",
        "\r\r\nGET /small HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "GET /small HTTP/1.1\r\nHost: b.example:x\r\n\r\n",
        "GET /small HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
        "GET http://b.example/small HTTP/1.1\r\nHost: a.example\r\n\r\n",
    ];
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let hello = By::Tls.ask("b.example");
    let (header, message) = hello.split_at(5);
    let (first, second) = message.split_at(100);
    let record = |part: &[u8]| -> Result<Vec<u8>> {
        let length = u16::try_from(part.len())?.to_be_bytes();
        Ok([&header[..3], &length, part].concat())
    };
    let alert = vec![21, 3, 1, 0, 2, 1, 90];
    let hello = [record(first)?, alert, record(second)?].concat();
    let requests = REQUESTS.map(|request| (By::Http, request.as_bytes().to_vec()));
    let asked: Vec<_> = requests.into_iter().chain([(By::Tls, hello)]).collect();
    for until_known in ["hold", "pass"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        limiter.take_precedence()?;
        for (by, bytes) in &asked {
            let response = Connection::new(&pair, *by)?.request(bytes)?;
            let line = String::from_utf8_lossy(&response);
            let (bytes, line) = (String::from_utf8_lossy(bytes), line.lines().next());
            println!("{until_known} {bytes:?}: {line:?}");
            ensure!(response.is_empty() == (until_known == "hold"), "{bytes:?}");
        }
        ensure!(counted(&limiter)? == 0);
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Neither before a name is read, nor with other bytes than the ones read.
#[test]
fn a_request_in_fragments_does_not_reach_the_server() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let limiter = start(&pair, &policy("hold"), "native")?;
    let [found, missing] = [("small", "b.example"), ("smoll", "a.example")]
        .map(|(file, host)| format!("GET /{file} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes());
    for is_read in [false, true] {
        let mut client = Connection::new(&pair, By::Http)?;
        if is_read {
            client.forge(0, &missing, false)?;
        }
        thread::sleep(LONG);
        let segment = client.segments(0, &found, found.len(), false)?.concat();
        client.send(&fragments(&segment)?)?;
        thread::sleep(LONG);
        let response = String::from_utf8(client.request(&missing)?)?;
        let line = response.lines().next();
        ensure!(
            line == Some("HTTP/1.1 404 Not Found"),
            "{is_read}: {response}"
        );
    }
    ensure!(counted(&limiter)? == 0 && reason(&limiter, "name_awaited")? > 2);
    ensure!(limiter.stop()?.success());
    Ok(())
}
