//! Limits by server name with nginx: uploads under one name are slowed, under another they are not.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, PinDirectory, RawSender, SERVER_INTERFACE};

use super::{binary, names, server::Server, start, succeed};
use crate::{PATIENCE, pair, wait};

/// The number of bytes of an upload.
const UPLOAD: usize = 500_000;

/// The maximum speed: without TLS, the upload would otherwise be complete before the daemon has read the name.
const PACE: [&str; 2] = ["--limit-rate", "1M"];

/// The limit drops packets of an upload, even if half of it comes before the name is known.
const LIMIT: &str = "cost: bytes, burst: 50k, count: 300k, period: 1s";

/// A server that accepts uploads by TLS, HTTP/1 and HTTP/2.
fn server(pair: &Pair) -> Result<(Server, tempfile::TempDir)> {
    let directory = tempfile::tempdir()?;
    names::certificate(directory.path())?;
    fs::write(directory.path().join("upload"), vec![b'x'; UPLOAD])?;
    let path = directory.path().display();
    let options = format!(
        "listen 10.77.0.1:443 ssl http2;
    listen [fd77::1]:443 ssl http2;
    listen 10.77.0.1:8080 http2;
    ssl_certificate {path}/certificate;
    ssl_certificate_key {path}/key;
    client_max_body_size 0;
    dav_methods PUT;"
    );
    Ok((
        Server::nginx_with(pair, &[("small", 100)], &options)?,
        directory,
    ))
}

/// A client's curl that resolves any name to the server.
struct Client<'p> {
    pair: &'p Pair,
    directory: &'p tempfile::TempDir,
    server: &'p str,
}

impl Client<'_> {
    /// Uploads under a name; returns how long it took. Without TLS, Debian 12's curl and nginx do not always agree in
    /// HTTP/2: the server answers 400, and the client tries again.
    fn upload(&self, address: &str, arguments: &[&str]) -> Result<Duration> {
        for _ in 0..5 {
            let began = Instant::now();
            let shown = self.try_to_upload(address, arguments)?;
            if shown == "201" || shown == "204" {
                return Ok(began.elapsed());
            }
            ensure!(shown == "400", "{address}: {shown}");
        }
        bail!("{address} {arguments:?}: the server always says 400")
    }

    /// Returns the server's response.
    fn try_to_upload(&self, address: &str, arguments: &[&str]) -> Result<String> {
        let mut curl = self.pair.client.command("curl");
        curl.args(["--silent", "--show-error", "--noproxy", "*", "--insecure"]);
        curl.args(["--max-time", "90", "--output", "/dev/null"]);
        curl.args(PACE)
            .args(["--write-out", "%{http_code}", "--connect-to"]);
        curl.arg(format!("::{}:", self.server));
        curl.arg("--upload-file")
            .arg(self.directory.path().join("upload"));
        succeed(curl.args(arguments).arg(format!("{address}/uploaded")))
    }

    /// Uploads under a name, and fails unless the limit drops packets.
    fn is_slowed(&self, by: Limited<'_>, address: &str, arguments: &[&str]) -> Result<()> {
        let [_, before] = by.counted()?;
        let took = self.upload(address, arguments)?;
        let [_, after] = by.counted()?;
        println!("{address} {arguments:?} by {}: {took:?}", self.server);
        ensure!(after > before, "{address} {arguments:?}: {took:?}");
        Ok(())
    }

    /// Uploads under a name, and fails if the limit counts its packets.
    fn is_free(&self, of: Limited<'_>, address: &str, arguments: &[&str]) -> Result<()> {
        let before = of.bytes()?;
        let took = self.upload(address, arguments)?;
        println!("{address} {arguments:?} by {}: {took:?}", self.server);
        // Closing segments of earlier connections may come late.
        let counted = of.bytes()? - before;
        ensure!(
            counted < UPLOAD as u64 / 100,
            "{address} {arguments:?}: {counted} bytes"
        );
        Ok(())
    }
}

/// A limit, by its name.
#[derive(Clone, Copy)]
struct Limited<'l>(&'l Limiter, &'l str);

impl Limited<'_> {
    /// Returns how many packets the limit has passed and dropped.
    fn counted(self) -> Result<[u64; 2]> {
        counted(self.0, self.1)
    }

    /// Returns how many bytes the limit has counted.
    fn bytes(self) -> Result<u64> {
        let status = self.0.status()?;
        let count = |what: &str| status["limits"][self.1][what].as_u64();
        let [passed, dropped] = ["passed_bytes", "dropped_bytes"].map(count);
        Ok(passed.context("no count")? + dropped.context("no count")?)
    }
}

pub(super) fn counted(limiter: &Limiter, limit: &str) -> Result<[u64; 2]> {
    let status = limiter.status()?;
    let count = |what: &str| status["limits"][limit][what].as_u64();
    let [passed, dropped] = ["passed_packets", "dropped_packets"].map(count);
    Ok([passed.context("no count")?, dropped.context("no count")?])
}

#[test]
fn one_name_is_slowed_and_another_is_not() -> Result<()> {
    let pair = pair()?;
    let (_server, directory) = server(&pair)?;
    let configuration = format!(
        "limits:\n  B: {{id: total, {LIMIT}, match: {{server-name: ['*.b.example', only.example], \
         destination-port: [80, 443, 8080]}}}}\n"
    );
    for (mode, servers) in [
        ("native", &["10.77.0.1", "[fd77::1]"][..]),
        ("generic", &["10.77.0.1"]),
    ] {
        let limiter = start(&pair, &configuration, mode)?;
        let limit = Limited(&limiter, "B");
        for server in servers {
            let client = Client {
                pair: &pair,
                directory: &directory,
                server,
            };
            client.is_free(limit, "https://a.example", &[])?;
            client.is_slowed(limit, "https://x.b.example", &["--http1.1"])?;
            if mode == "generic" {
                continue;
            }
            client.is_free(limit, "https://b.example", &["--tls-max", "1.2"])?;
            client.is_slowed(limit, "https://X.B.Example", &["--tls-max", "1.2"])?;
            client.is_free(limit, "http://a.example", &[])?;
            client.is_slowed(limit, "http://only.example", &[])?;
        }
        let client = Client {
            pair: &pair,
            directory: &directory,
            server: "10.77.0.1",
        };
        let http2 = ["--http2-prior-knowledge"];
        client.is_free(limit, "http://a.example:8080", &http2)?;
        client.is_slowed(limit, "http://y.b.example:8080", &http2)?;
        let [passed, dropped] = counted(&limiter, "B")?;
        println!("{mode}: {passed} passed, {dropped} dropped");
        ensure!(passed > 0 && dropped > 0, "{passed} {dropped}");
        ensure!(limiter.stop()?.success());
    }
    Ok(())
}

#[test]
fn each_name_has_a_bucket_that_outlives_a_reload() -> Result<()> {
    let pair = pair()?;
    let (_server, directory) = server(&pair)?;
    let configuration = |rest: &str| {
        format!(
            "server-names: [a.example, b.example]\n\
             limits:\n  Names: {{id: server-name, {LIMIT}}}\n{rest}"
        )
    };
    let limiter = start(&pair, &configuration(""), "native")?;
    let limit = Limited(&limiter, "Names");
    let client = Client {
        pair: &pair,
        directory: &directory,
        server: "10.77.0.1",
    };
    client.is_slowed(limit, "https://www.a.example", &[])?;
    client.is_free(limit, "https://other.example", &[])?;
    // Another bucket, which is full.
    client.is_slowed(limit, "https://b.example", &[])?;
    let status = limiter.status()?;
    ensure!(status["server_names_error"] == Value::Null, "{status:#}");
    ensure!(
        status["server_names"]["named"].as_u64() >= Some(3),
        "{status:#}"
    );
    let attacked = limiter.show(&["offenders", "--by", "name"])?;
    ensure!(
        attacked.contains("a.example") && attacked.contains("b.example"),
        "{attacked}"
    );
    let other = "  Other: {id: total, cost: packets, rate: 100k/s}\n";
    limiter.configure(&configuration(other))?;
    limiter.show(&["reload"])?;
    client.is_slowed(limit, "https://www.b.example", &[])?;
    client.is_free(limit, "https://other.example", &[])?;
    ensure!(limiter.stop()?.success());
    Ok(())
}

fn connect(pair: &Pair) -> Result<TcpStream> {
    let address: SocketAddr = "10.77.0.1:80".parse()?;
    let stream = pair.client.enter(|| Ok(TcpStream::connect(address)?))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Requests a file under a name.
fn ask(stream: &mut TcpStream, name: &str) -> Result<()> {
    write!(stream, "GET /small HTTP/1.1\r\nHost: {name}\r\n\r\n")?;
    let mut response = [0; 4096];
    let length = stream.read(&mut response)?;
    ensure!(response[..length].starts_with(b"HTTP/1.1 200"));
    Ok(())
}

/// Sends ten requests under a name without a limit; returns how many more packets the limit has passed.
fn asked_ten_times(limiter: &Limiter, stream: &mut TcpStream) -> Result<u64> {
    let [before, _] = counted(limiter, "B")?;
    for _ in 0..10 {
        ask(stream, "a.example")?;
    }
    let [passed, _] = counted(limiter, "B")?;
    Ok(passed - before)
}

/// The pinned programs count connections by name without a daemon. The next daemon reads the names of connections
/// opened meanwhile.
#[test]
fn names_outlive_the_daemon() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let configuration = "limits:\n  B: {id: total, cost: packets, burst: 1000, count: 1, period: 1h, \
                         match: {server-name: b.example, destination-port: 80}}\n";
    pair.compute_checksums()?;
    let pins = PinDirectory::new()?;
    let argument = pins.argument();
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "native", &argument];
    let mut limiter = Limiter::start(binary(), &pair.server, configuration, &arguments)?;
    let mut old = connect(&pair)?;
    ask(&mut old, "b.example")?;
    wait(|| Ok(limiter.status()?["server_names"]["named"] == 1))?;
    limiter.kill()?;
    ensure!(asked_ten_times(&limiter, &mut old)? >= 10);
    let mut new = connect(&pair)?;
    ask(&mut new, "b.example")?;
    ensure!(asked_ten_times(&limiter, &mut new)? == 0);
    limiter.restart()?;
    for stream in [&mut old, &mut new] {
        // Until the daemon has entered or read the name again.
        wait(|| Ok(asked_ten_times(&limiter, stream)? >= 10))?;
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// OpenSSL's own client sends a name in one segment, or none.
#[test]
fn packets_of_other_clients_are_counted_by_their_names() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let configuration =
        format!("limits: {{B: {{id: ipAddress, {LIMIT}, match: {{server-name: b.example}}}}}}\n");
    let limiter = start(&pair, &configuration, "native")?;
    for arguments in [&["-noservername"][..], &["-servername", "a.example"]] {
        names::s_client(&pair, arguments)?;
        ensure!(counted(&limiter, "B")? == [0, 0], "{arguments:?}");
    }
    // On a busy machine, a connection may close before the daemon has read its name.
    for attempt in 0.. {
        names::s_client(&pair, &["-servername", "B.Example"])?;
        let [passed, _] = counted(&limiter, "B")?;
        if passed > 0 {
            break;
        }
        ensure!(attempt < 10, "no packet is counted by its name");
    }
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// An open connection keeps its name under any later policy.
#[test]
fn an_open_connection_keeps_its_name_when_the_policy_changes() -> Result<()> {
    let pair = pair()?;
    let (_server, _directory) = server(&pair)?;
    let configuration = |name: &str| {
        format!(
            "limits:\n  B: {{id: total, cost: packets, burst: 1000, count: 1, period: 1h, \
             match: {{server-name: {name}, destination-port: 80}}}}\n"
        )
    };
    let limiter = start(&pair, &configuration("a.example"), "native")?;
    let mut stream = connect(&pair)?;
    ask(&mut stream, "b.example")?;
    ensure!(counted(&limiter, "B")? == [0, 0]);
    limiter.configure(&configuration("b.example"))?;
    limiter.show(&["reload"])?;
    // Once the name is entered again, another name in the same connection changes nothing.
    wait(|| Ok(asked_ten_times(&limiter, &mut stream)? >= 10))?;
    ensure!(limiter.stop()?.success());
    Ok(())
}

/// A connection's name comes from its client alone, and segments without a connection set no name.
#[test]
fn segments_of_no_connection_name_nothing() -> Result<()> {
    let pair = pair()?;
    let (_server, directory) = server(&pair)?;
    let configuration = format!(
        "limits:\n  B: {{id: total, {LIMIT}, match: {{server-name: b.example, \
         destination-port: 80}}}}\n"
    );
    let limiter = start(&pair, &configuration, "native")?;
    let [client, server]: [IpAddr; 2] = ["10.77.0.2".parse()?, "10.77.0.1".parse()?];
    let frame = Frame::new(client, server);
    let request = b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let frames: Result<Vec<_>> = (1024..6024)
        .map(|port| frame.tcp_data(port, 80, (1, 1), request))
        .collect();
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames?)?;
    let uploads = Client {
        pair: &pair,
        directory: &directory,
        server: "10.77.0.1",
    };
    uploads.upload("http://a.example", &[])?;
    let counts = counted(&limiter, "B")?;
    ensure!(counts == [0, 0], "{counts:?}");
    ensure!(limiter.stop()?.success());
    Ok(())
}
