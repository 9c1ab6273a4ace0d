//! A client with a network stack of its own, which would have the server take another name than the one that is
//! counted.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use aya::maps::{HashMap, Map, MapData};
use limiter_names::testing::{Hello, records};
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Pair, PinDirectory, RawSender, SERVER_INTERFACE, next_numbers,
};

use super::{binary, names, server::Server, start};
use crate::{pair, take_turn};

/// Longer than it takes to read a name.
const SOON: Duration = Duration::from_millis(300);

/// Longer than a client takes whose data was held, or sent several times.
const WHILE: Duration = Duration::from_secs(4);

/// So far ahead no server has sent anything: it drops a segment that acknowledges this.
const AHEAD: u32 = 1_000_000;

/// A web server with and without TLS.
fn server(pair: &Pair) -> Result<(Server, tempfile::TempDir)> {
    let directory = tempfile::tempdir()?;
    names::certificate(directory.path())?;
    let place = directory.path().display();
    let options = format!(
        "listen 10.77.0.1:443 ssl;
    ssl_certificate {place}/certificate;
    ssl_certificate_key {place}/key;"
    );
    Ok((
        Server::nginx_with(pair, &[("small", 100)], &options)?,
        directory,
    ))
}

/// How a client asks for a name.
#[derive(Clone, Copy, Debug)]
enum By {
    Http,
    /// In two segments.
    Tls,
}

impl By {
    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Tls => 443,
        }
    }

    /// Returns the first bytes, as many for each name of the same length.
    fn ask(self, name: &str) -> Vec<u8> {
        match self {
            Self::Http => format!("GET /small HTTP/1.1\r\nHost: {name}\r\n\r\n").into_bytes(),
            Self::Tls => {
                let hello = Hello {
                    name: Some(name.as_bytes()),
                    applications: &[],
                    key_share: 1600,
                    is_encrypted: false,
                };
                records(&hello.message(), 1 << 14)
            }
        }
    }
}

/// An open connection, and the means to forge its segments.
struct Connection<'p> {
    pair: &'p Pair,
    stream: TcpStream,
    by: By,
    /// The numbers of the first bytes of the client and of the server.
    first: [u32; 2],
}

impl<'p> Connection<'p> {
    fn new(pair: &'p Pair, by: By) -> Result<Self> {
        let address = SocketAddr::new("10.77.0.1".parse()?, by.port());
        let stream = pair.client.enter(|| Ok(TcpStream::connect(address)?))?;
        stream.set_read_timeout(Some(WHILE))?;
        Ok(Self {
            first: next_numbers(&stream)?,
            pair,
            stream,
            by,
        })
    }

    /// Sends bytes at a place of the stream, of which the client's network stack knows nothing. `ahead`: the
    /// server drops them.
    fn forge(&self, place: usize, bytes: &[u8], ahead: bool) -> Result<()> {
        let [client, server]: [IpAddr; 2] = ["10.77.0.2".parse()?, "10.77.0.1".parse()?];
        let [next, expected] = self.first;
        let frame = Frame::new(client, server);
        let port = self.stream.local_addr()?.port();
        let acknowledged = expected.wrapping_add(if ahead { AHEAD } else { 0 });
        let frames: Result<Vec<_>> = (place..)
            .step_by(1000)
            .zip(bytes.chunks(1000))
            .map(|(place, part)| {
                let sequence = next.wrapping_add(u32::try_from(place)?);
                frame.tcp_data(port, self.by.port(), (sequence, acknowledged), part)
            })
            .collect();
        RawSender::new(&self.pair.client, CLIENT_INTERFACE)?.send_frames(&frames?)?;
        Ok(())
    }

    /// Sends bytes as every client does; returns whether the server says anything.
    fn is_answered(&mut self, bytes: &[u8]) -> Result<bool> {
        self.stream.write_all(bytes)?;
        match self.stream.read(&mut [0; 4096]) {
            Ok(length) => Ok(length > 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => bail!(error),
        }
    }
}

fn contradicted(limiter: &Limiter) -> Result<u64> {
    let status = limiter.status()?;
    let count = status["reasons"]["name_contradicted"].as_u64();
    count.with_context(|| format!("no count in {status:#}"))
}

fn policy(until_known: &str) -> String {
    format!(
        "limits:\n  B: {{id: total, cost: packets, burst: 1000, count: 1, period: 1h, \
         match: {{server-name: b.example, destination-port: [80, 443]}}}}\n\
         names: {{tls: {{until-known: {until_known}}}}}\n"
    )
}

#[test]
fn no_other_name_reaches_the_server_than_the_one_that_was_read() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for (mode, until_known) in [("native", "hold"), ("native", "pass"), ("generic", "hold")] {
        let limiter = start(&pair, &policy(until_known), mode)?;
        for by in [By::Http, By::Tls] {
            let [one, other] = ["a.example", "b.example"].map(|name| by.ask(name));
            // The server gets nothing that is held; else it drops the first segments for its own reasons.
            let ahead = until_known == "pass";
            let before = contradicted(&limiter)?;
            let mut honest = Connection::new(&pair, by)?;
            honest.forge(0, &other, ahead)?;
            thread::sleep(SOON);
            ensure!(honest.is_answered(&other)?, "{mode} {until_known} {by:?}");
            ensure!(contradicted(&limiter)? == before, "{by:?}");
            let mut client = Connection::new(&pair, by)?;
            client.forge(0, &one, ahead)?;
            thread::sleep(SOON);
            ensure!(!client.is_answered(&other)?, "{mode} {until_known} {by:?}");
            let counted = contradicted(&limiter)? - before;
            println!("{mode} {until_known} {by:?}: {counted} segments were dropped");
            ensure!(counted > 0);
        }
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Segments may reach the server before the name is read, but none after two different bytes.
#[test]
fn a_connection_of_two_names_is_over() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for until_known in ["pass", "hold"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        let [one, other] = ["a.example", "b.example"].map(|name| By::Http.ask(name));
        let client = Connection::new(&pair, By::Http)?;
        // The names differ before this place, but end behind it.
        let middle = other.len() - 10;
        client.forge(0, &one[..middle], true)?;
        client.forge(0, &other[..middle], false)?;
        thread::sleep(SOON);
        ensure!(contradicted(&limiter)? == 0, "{until_known}");
        client.forge(middle, &other[middle..], false)?;
        thread::sleep(SOON);
        let dropped = contradicted(&limiter)?;
        println!("{until_known}: {dropped} segments were dropped");
        ensure!(dropped > 0, "{until_known}");
        let status = limiter.status()?;
        let counted = status["server_names"]["nameless"]["contradictory"].as_u64();
        ensure!(counted == Some(1), "{status:#}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Has the programs forget all bytes that were read, as they do when too many others come.
fn forget(pins: &PinDirectory) -> Result<()> {
    let files = pins.files()?;
    let file = files.iter().find(|file| file.ends_with("FIRST_BYTES_READ"));
    let map = Map::LruHashMap(MapData::from_pin(file.context("no map")?)?);
    let mut bytes: HashMap<_, [u8; 40], [u8; 4096]> = map.try_into()?;
    let all: Vec<_> = bytes.keys().collect::<Result<_, _>>()?;
    ensure!(!all.is_empty());
    for ends in all {
        bytes.remove(&ends)?;
    }
    Ok(())
}

/// Segments are told again if the programs have forgotten the bytes: a client that sends the same goes on, and no
/// other.
#[test]
fn what_the_programs_have_forgotten_is_compared_by_the_daemon() -> Result<()> {
    let _turn = take_turn();
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    pair.compute_checksums()?;
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "native", &argument];
    let limiter = Limiter::start(binary(), &pair.server, &policy("hold"), &arguments)?;
    for by in [By::Http, By::Tls] {
        let [one, other] = ["a.example", "b.example"].map(|name| by.ask(name));
        for (first, is_answered) in [(&other, true), (&one, false)] {
            let mut client = Connection::new(&pair, by)?;
            client.forge(0, first, false)?;
            thread::sleep(SOON);
            forget(&pins)?;
            ensure!(client.is_answered(&other)? == is_answered, "{by:?}");
        }
    }
    ensure!(contradicted(&limiter)? > 0);
    ensure!(limiter.stop()?.success());
    Ok(())
}
