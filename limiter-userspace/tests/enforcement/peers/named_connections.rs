//! Limits on open connections by server name, with nginx: OpenSSL's client gets its TLS connection only while the
//! requested name has room.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, ChildStderr, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{Limiter, Pair, PinDirectory, SERVER_INTERFACE};

use super::{binary, own_client::server_with, server::Server, start};
use crate::{PATIENCE, pair, wait};

/// Longer than an admitted client takes: a held hello is retransmitted after 200 ms.
const WHILE: Duration = Duration::from_millis(1_500);

/// A web server with TLS that keeps connections open.
fn server(pair: &Pair) -> Result<(Server, tempfile::TempDir)> {
    server_with(pair, "client_header_timeout 300s; keepalive_timeout 300s;")
}

/// A client that holds its connection.
struct Client {
    openssl: Child,
    /// Closing the pipe ends the connection.
    _held: ChildStdin,
    /// The client's line about its handshake.
    said: Receiver<String>,
    /// When the handshake began.
    began: Instant,
}

impl Client {
    fn new(pair: &Pair, name: &str) -> Result<Self> {
        let arguments = if name.is_empty() {
            vec!["-noservername"]
        } else {
            vec!["-servername", name]
        };
        let mut openssl = pair
            .client
            .command("openssl")
            .args(["s_client", "-brief", "-connect", "10.77.0.1:443"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let held = openssl.stdin.take().context("no input")?;
        let errors = openssl.stderr.take().context("no output")?;
        Ok(Self {
            openssl,
            _held: held,
            said: listen(errors),
            began: Instant::now(),
        })
    }

    /// Returns how long after its begin the connection was established, if within `time`.
    fn within(&self, time: Duration) -> Option<Duration> {
        let said = self.said.recv_timeout(time).ok()?;
        said.contains("ESTABLISHED").then(|| self.began.elapsed())
    }

    /// Fails unless the connection is soon established.
    fn is_in(&self) -> Result<Duration> {
        self.within(PATIENCE).context("not established")
    }

    /// Fails if the connection is established at once.
    fn waits(&self) -> Result<()> {
        ensure!(self.within(WHILE).is_none(), "established");
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The client may have ended by itself.
        let _ = self.openssl.kill();
        let _ = self.openssl.wait();
    }
}

/// Returns a channel for the line about the end of the handshake, or for the last line.
fn listen(errors: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut last = String::new();
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            last.clone_from(&line);
            if line.contains("ESTABLISHED") {
                break;
            }
        }
        // The receiver may be gone.
        let _ = sender.send(last);
    });
    receiver
}

/// Returns how many connections a limit counts.
fn open(limiter: &Limiter, limit: &str) -> Result<u64> {
    let status = limiter.status()?;
    let open = status["limits"][limit]["open"].as_u64();
    open.with_context(|| format!("no count in {status:#}"))
}

/// Fails unless the limit soon counts this many.
fn assert_open(limiter: &Limiter, limit: &str, expected: u64) -> Result<()> {
    let counted = wait(|| Ok(open(limiter, limit)? == expected));
    counted.with_context(|| format!("{limit} does not count {expected}"))
}

const HOLD: &str = "names: {tls: {until-known: hold}}\n";

fn policy(more: &str, rest: &str) -> String {
    format!(
        "limits:\n  B: {{id: total, cost: connections, limit: 2, match: {{server-name: b.example}}{more}}}\n{rest}"
    )
}

#[test]
fn a_name_has_only_so_many_connections() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    for (mode, rest) in [("native", HOLD), ("generic", HOLD), ("native", "")] {
        let limiter = start(&pair, &policy("", rest), mode)?;
        let mut open = Vec::new();
        for _ in 0..2 {
            let client = Client::new(&pair, "b.example")?;
            println!("{mode} {rest}: {:?}", client.is_in()?);
            open.push(client);
        }
        // Without `hold`, the client's last segment may arrive before its name is known.
        if !rest.is_empty() {
            assert_open(&limiter, "B", 2)?;
            let third = Client::new(&pair, "b.example")?;
            third.waits()?;
            let other = Client::new(&pair, "a.example")?;
            println!("another name: {:?}", other.is_in()?);
            open.pop();
            println!("after waiting: {:?}", third.is_in()?);
            assert_open(&limiter, "B", 2)?;
        }
        drop(open);
        assert_open(&limiter, "B", 0)?;
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

#[test]
fn those_who_come_together_are_no_more() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let limiter = start(&pair, &policy("", HOLD), "native")?;
    let clients: Result<Vec<_>> = (0..40).map(|_| Client::new(&pair, "b.example")).collect();
    let clients = clients?;
    let mut established = 0;
    let mut look = || {
        let new = clients
            .iter()
            .filter(|one| one.within(Duration::ZERO).is_some());
        established += new.count();
        established
    };
    wait(|| Ok(look() >= 2))?;
    thread::sleep(WHILE);
    let (established, found) = (look(), open(&limiter, "B")?);
    println!("{established} are established, {found} counted");
    ensure!((established, found) == (2, 2));
    drop(clients);
    assert_open(&limiter, "B", 0)?;
    ensure!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn each_name_has_its_own_and_others_what_is_left() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let configuration = format!(
        "server-names: [a.example, b.example]\nlimits:\n  \
         Each: {{id: server-name, cost: connections, limit: 1}}\n  \
         Web: {{id: total, cost: connections, limit: 100, match: {{server-name: [a.example, '*.a.example', \
         b.example]}}}}\n  \
         Others: {{id: total, cost: connections, limit: 1, otherwise: true, match: {{server-name: '*'}}}}\n{HOLD}"
    );
    let limiter = start(&pair, &configuration, "native")?;
    let first: Result<Vec<_>> = ["www.a.example", "b.example", ""]
        .into_iter()
        .map(|name| Client::new(&pair, name))
        .collect();
    let first = first?;
    for client in &first {
        client.is_in()?;
    }
    let second: Result<Vec<_>> = ["a.example", "b.example", "c.example"]
        .into_iter()
        .map(|name| Client::new(&pair, name))
        .collect();
    let second = second?;
    thread::sleep(WHILE);
    for client in &second {
        ensure!(client.within(Duration::ZERO).is_none());
    }
    for (limit, expected) in [("Each", 2), ("Web", 2), ("Others", 1)] {
        assert_open(&limiter, limit, expected)?;
    }
    drop(first);
    for client in &second {
        client.is_in()?;
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

#[test]
fn a_client_without_admission_is_told_so() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let limiter = start(&pair, &policy(", deny: reset", HOLD), "generic")?;
    let open = [
        Client::new(&pair, "b.example")?,
        Client::new(&pair, "b.example")?,
    ];
    for client in &open {
        client.is_in()?;
    }
    let third = Client::new(&pair, "b.example")?;
    let said = third.said.recv_timeout(PATIENCE)?;
    ensure!(!said.contains("ESTABLISHED"), "{said}");
    println!("{said}");
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Open connections count under any later policy, and none turns them away.
#[test]
fn open_connections_count_after_a_reload_and_a_restart() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    pair.compute_checksums()?;
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "native", &argument];
    let other =
        "limits:\n  A: {id: total, cost: packets, rate: 100k/s, match: {server-name: a.example}}\n";
    let mut limiter = Limiter::start(binary(), &pair.server, other, &arguments)?;
    let open: Result<Vec<_>> = (0..3).map(|_| Client::new(&pair, "b.example")).collect();
    let open = open?;
    for client in &open {
        client.is_in()?;
    }
    // More than the limit allows: they stay, and no other connection is admitted.
    limiter.configure(&policy("", HOLD))?;
    limiter.show(&["reload"])?;
    assert_open(&limiter, "B", 3)?;
    Client::new(&pair, "b.example")?.waits()?;
    limiter.configure(&policy("", &format!("{HOLD}malformed: pass\n")))?;
    limiter.show(&["reload"])?;
    assert_open(&limiter, "B", 3)?;
    limiter.kill()?;
    limiter.restart()?;
    assert_open(&limiter, "B", 3)?;
    Client::new(&pair, "b.example")?.waits()?;
    drop(open);
    assert_open(&limiter, "B", 0)?;
    Client::new(&pair, "b.example")?.is_in()?;
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Requests a file from a server that has no TLS; returns how long it took.
fn ask(pair: &Pair, hello: &[u8]) -> Result<Duration> {
    let began = Instant::now();
    let address: SocketAddr = "10.77.0.1:80".parse()?;
    let mut stream = pair.client.enter(|| Ok(TcpStream::connect(address)?))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(hello)?;
    let mut response = [0; 4096];
    ensure!(stream.read(&mut response)? > 0);
    Ok(began.elapsed())
}

/// Data that certainly has no name is held only for a time, and so is any data without a daemon.
#[test]
fn what_cannot_be_read_is_held_for_a_time() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let configuration = format!(
        "limits:\n  B: {{id: total, cost: connections, limit: 2, match: {{server-name: b.example, \
         destination-port: [80, 443]}}}}\n{HOLD}"
    );
    pair.compute_checksums()?;
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "native", &argument];
    let mut limiter = Limiter::start(binary(), &pair.server, &configuration, &arguments)?;
    for hello in [
        &b"GET /small HTTP/1.0\r\n\r\n"[..],
        b"GET /small HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"junk\r\n\r\n",
    ] {
        let took = ask(&pair, hello)?;
        println!("{:?}: {took:?}", String::from_utf8_lossy(hello));
    }
    limiter.kill()?;
    let took = Client::new(&pair, "b.example")?.is_in()?;
    println!("without a daemon: {took:?}");
    ensure!(Duration::from_secs(1) < took, "{took:?}");
    limiter.restart()?;
    ensure!(limiter.stop()?.success());
    Ok(())
}

fn queue_of(limiter: &Limiter, limit: &str) -> Result<Value> {
    Ok(limiter.status()?["limits"][limit]["queue"].clone())
}

/// The file from Traffic Server's documentation, with smaller numbers.
#[test]
fn traffic_servers_file_does_what_it_says() -> Result<()> {
    let pair = pair()?;
    let (_server, directory) = server(&pair)?;
    let selector = "\
selector:
  - sni: test1.example.com
    limit: 1
    queue:
      size: 10
      max-age: 30
    metrics:
      tag: example.com
      prefix: ddos
    ip-rep: main
    exclude: internal
  - sni: test2.example.com
    aliases: [test3.example.com, test4.example.com]
    limit: 1
  - sni: '*'
    limit: 1
ip-rep:
  - name: main
    buckets: 10
    size: 15
    percentage: 90
    max-age: 300
    perma-block:
      limit: 100
      threshold: 1
      max-age: 1800
lists:
  - name: internal
    cidr:
      - 192.168.0.0/16
";
    let limiter = start(&pair, &format!("{selector}{HOLD}"), "native")?;
    assert_example(directory.path(), &limiter)?;
    let mut first = Client::new(&pair, "test1.example.com")?;
    first.is_in()?;
    let second = Client::new(&pair, "test1.example.com")?;
    wait(|| Ok(queue_of(&limiter, "test1.example.com")?["waiting"] == 1))?;
    let third = Client::new(&pair, "test3.example.com")?;
    third.is_in()?;
    Client::new(&pair, "test2.example.com")?.waits()?;
    let other = Client::new(&pair, "test5.example.com")?;
    other.is_in()?;
    Client::new(&pair, "")?.waits()?;
    first.openssl.kill()?;
    second.is_in()?;
    let flat = limiter.show(&["stats", "--flat"])?;
    for line in [
        "ddos.sni.example.com.queued 1",
        "ddos.sni.example.com.resumed 1",
        "ddos.sni.example.com.expired 0",
        "ddos.sni.example.com.rejected 0",
    ] {
        ensure!(flat.lines().any(|one| one == line), "{line}: {flat}");
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// Fails unless `limiter check` of the file names the limits.
fn assert_example(directory: &Path, limiter: &Limiter) -> Result<()> {
    let copy = directory.join("copy.yaml");
    fs::copy(limiter.configuration(), &copy)?;
    let shown = limiter.show(&["check", &copy.display().to_string()])?;
    for limit in ["test1.example.com", "test2.example.com", "*"] {
        ensure!(shown.contains(&format!("  {limit} ")), "{limit}: {shown}");
    }
    Ok(())
}
