//! A client with a network stack of its own, which would have its connection count by no name.

use std::{thread, time::Duration};

use anyhow::{Result, ensure};
use limiter_names::testing::{Hello, records};
use testbed::Limiter;

use super::{
    own_client::{By, Connection, fragments, policy, reason, server},
    server_names, start,
};
use crate::{pair, wait};

/// Longer than data is held while nobody reads its connection's name.
const LONG: Duration = Duration::from_millis(1500);

/// More segments than are read of a connection.
const MANY: usize = 20;

/// How a client hides the name that it asks for.
#[derive(Clone, Copy, Debug)]
enum Hides {
    /// In more segments than are read, at one moment.
    InPieces,
    /// The same, after the first byte and a pause.
    InPiecesLater,
    /// Behind segments that the server drops, since their checksums are wrong, and a pause.
    BehindDamaged,
    /// Behind the first byte, sent again and again, and a pause.
    BehindRepeated,
}

impl Hides {
    const ALL: [Self; 4] = [
        Self::InPieces,
        Self::InPiecesLater,
        Self::BehindDamaged,
        Self::BehindRepeated,
    ];

    /// Sends what hides the first bytes, and nearly all of these.
    fn send(self, client: &Connection<'_>, bytes: &[u8]) -> Result<()> {
        let pieces = |place| client.segments(place, &bytes[place..], bytes.len() / MANY, false);
        let first = || client.segments(0, &bytes[..1], 1, false);
        match self {
            Self::InPieces => client.send(&pieces(0)?),
            Self::InPiecesLater => {
                client.send(&first()?)?;
                thread::sleep(LONG);
                client.send(&pieces(1)?)
            }
            Self::BehindDamaged => {
                let mut damaged = first()?.concat();
                damaged[TCP_CHECKSUM] ^= 0x5a;
                client.send(&vec![damaged; MANY])?;
                thread::sleep(LONG);
                client.send(&pieces(0)?)
            }
            Self::BehindRepeated => {
                client.send(&vec![first()?.concat(); MANY])?;
                thread::sleep(LONG);
                client.send(&pieces(0)?)
            }
        }
    }
}

/// Behind the headers of Ethernet and IPv4.
const TCP_CHECKSUM: usize = 14 + 20 + 16;

/// Returns how many packets the limit has counted.
fn counted(limiter: &Limiter) -> Result<u64> {
    let [passed, dropped] = server_names::counted(limiter, "B")?;
    Ok(passed + dropped)
}

/// On a busy machine the network stack's own segment, with the whole name, may be read after all: then it counts.
#[test]
fn a_client_that_hides_its_name_is_served_only_if_it_is_counted() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for mode in ["native", "generic"] {
        let limiter = start(&pair, &policy("hold"), mode)?;
        limiter.take_precedence()?;
        let is_answered = |by: By, hides: Hides| {
            let bytes = by.ask("b.example");
            let mut client = Connection::new(&pair, by)?;
            hides.send(&client, &bytes)?;
            client.is_answered(&bytes)
        };
        let is_answered = &is_answered;
        for by in [By::Http, By::Tls] {
            let before = counted(&limiter)?;
            let answered = thread::scope(|scope| {
                let clients = Hides::ALL.map(|hides| scope.spawn(move || is_answered(by, hides)));
                let mut answered = 0;
                for client in clients {
                    answered += u64::from(client.join().expect("no client panics")?);
                }
                anyhow::Ok(answered)
            })?;
            let counted = counted(&limiter)? - before;
            ensure!(
                counted >= answered && (answered > 0 || counted == 0),
                "{mode} {by:?}: {answered} clients were answered, {counted} packets counted"
            );
        }
        ensure!(reason(&limiter, "name_awaited")? > 0, "{mode}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Also if its hello takes several segments, and comes slowly.
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

/// Returns first bytes of which the name lies among those that are read, or behind.
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
            };
            records(&hello.message(), 1 << 14)
        }
    }
}

/// Servers read hellos and requests of any length; what is not read may have the name.
#[test]
fn a_name_behind_the_bytes_that_are_read_does_not_reach_the_server() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for until_known in ["hold", "pass"] {
        let limiter = start(&pair, &policy(until_known), "native")?;
        limiter.take_precedence()?;
        // The last packets of a connection that is served are counted a little later: these come after.
        for is_behind in [true, false] {
            for by in [By::Http, By::Tls] {
                let before = counted(&limiter)?;
                let is_answered = Connection::new(&pair, by)?.is_answered(&long(by, is_behind))?;
                let is_counted = counted(&limiter)? > before;
                println!("{until_known} {by:?} {is_behind}: {is_answered} {is_counted}");
                ensure!(is_answered == (until_known == "pass" || !is_behind));
                ensure!(is_counted != is_behind || until_known == "pass");
            }
        }
        // Where data passes, the server may close the connection before it is read.
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

/// What no standard allows, and nginx takes all the same, but for the hello with an alert between its records and
/// the two hosts.
#[test]
fn what_a_lenient_server_takes_does_not_reach_it() -> Result<()> {
    const REQUESTS: [&str; 5] = [
        "GET  /small HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "GET http://b.example/small\r\n",
        "\r\r\nGET /small HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "GET /small HTTP/1.1\r\nHost: b.example:x\r\n\r\n",
        "GET /small HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
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
            let answer = Connection::new(&pair, *by)?.answer(bytes)?;
            let line = String::from_utf8_lossy(&answer);
            let (bytes, line) = (String::from_utf8_lossy(bytes), line.lines().next());
            println!("{until_known} {bytes:?}: {line:?}");
            ensure!(answer.is_empty() == (until_known == "hold"), "{bytes:?}");
        }
        ensure!(counted(&limiter)? == 0);
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

/// Neither while no name is read, nor with other bytes than those that were read.
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
        let answer = String::from_utf8(client.answer(&missing)?)?;
        let line = answer.lines().next();
        ensure!(
            line == Some("HTTP/1.1 404 Not Found"),
            "{is_read}: {answer}"
        );
    }
    ensure!(counted(&limiter)? == 0 && reason(&limiter, "name_awaited")? > 2);
    ensure!(limiter.stop()?.success());
    Ok(())
}
