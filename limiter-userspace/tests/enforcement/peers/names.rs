//! Server names in real clients' traffic, as `limiter names` reads them: curl, `openssl s_client`, and Chromium over
//! TCP and QUIC, with nginx.

use std::{
    fs,
    net::UdpSocket,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{Pair, Recorder, SERVER_INTERFACE, capture::PCAPNG};

use super::{binary, program, server::Server, succeed};
use crate::{PATIENCE, pair, wait};

const FILE: (&str, usize) = ("small", 100);

/// More datagrams than Chromium's QUIC hello has: without a response, Chromium retransmits them.
const HELLO: usize = 4;

/// Makes a certificate and its key.
pub(super) fn certificate(directory: &Path) -> Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]);
    openssl.args(["-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-subj", "/CN=names.example", "-keyout"]);
    succeed(
        openssl
            .arg(directory.join("key"))
            .arg("-out")
            .arg(directory.join("certificate")),
    )?;
    Ok(())
}

/// Starts nginx for TLS, and for HTTP/2 without TLS on port 8080.
fn start(pair: &Pair, directory: &Path) -> Result<Server> {
    certificate(directory)?;
    let path = directory.display();
    let options = format!(
        "listen 10.77.0.1:443 ssl http2;
    listen 10.77.0.1:8080 http2;
    ssl_certificate {path}/certificate;
    ssl_certificate_key {path}/key;
    ssl_protocols TLSv1.2 TLSv1.3;"
    );
    Server::nginx_with(pair, &[FILE], &options)
}

/// Fetches the file at an address with curl, under any name.
pub(super) fn curl(pair: &Pair, address: &str, arguments: &[&str]) -> Result<()> {
    let mut curl = pair.client.command("curl");
    curl.args([
        "--silent",
        "--show-error",
        "--noproxy",
        "*",
        "--max-time",
        "30",
    ]);
    curl.args([
        "--insecure",
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code}",
    ]);
    curl.args(["--connect-to", "::10.77.0.1:"]);
    let shown = succeed(curl.args(arguments).arg(format!("{address}/small")))?;
    ensure!(shown == "200", "{address}: {shown}");
    Ok(())
}

pub(super) fn s_client(pair: &Pair, arguments: &[&str]) -> Result<()> {
    let mut openssl = pair.client.command("openssl");
    openssl.args(["s_client", "-connect", "10.77.0.1:443"]);
    succeed(openssl.args(arguments).stdin(Stdio::null()))?;
    Ok(())
}

/// Fetches the file under both names with Chromium. The second one goes over QUIC to a silent socket, which only gets
/// the first packets, so Chromium does not end by itself.
fn chromium(pair: &Pair, directory: &Path, silent: &UdpSocket) -> Result<()> {
    let fonts = directory.join("fonts.conf");
    fs::write(&fonts, program::fonts())?;
    for (name, options) in [
        ("chromium.example", &[][..]),
        (
            "quic.example",
            &[
                "--enable-quic",
                "--origin-to-force-quic-on=quic.example:443",
            ],
        ),
    ] {
        // Killing it ends all of its processes.
        let mut chromium = program::command(&pair.client, "unshare")?;
        chromium.args(["--pid", "--fork", "--kill-child=KILL"]);
        chromium.arg(program::chromium()?).args([
            "--headless",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--ignore-certificate-errors",
            "--host-resolver-rules=MAP *.example 10.77.0.1",
            "--dump-dom",
        ]);
        chromium.args(options);
        chromium.arg(format!(
            "--user-data-dir={}",
            directory.join(name).display()
        ));
        chromium.env("FONTCONFIG_FILE", &fonts);
        chromium.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
        chromium.arg(format!("https://{name}/small"));
        let said = fs::File::create(directory.join("said"))?;
        chromium
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said);
        let mut child = chromium.spawn().context("cannot run chromium")?;
        if options.is_empty() {
            wait(|| Ok(child.try_wait()?.is_some()))?;
            continue;
        }
        for _ in 0..HELLO {
            silent.recv(&mut [0; 2048]).context("no hello over QUIC")?;
        }
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

/// Runs `limiter names` on a capture.
fn names(capture: &[u8], directory: &Path, arguments: &[&str]) -> Result<String> {
    let file = directory.join("names.pcapng");
    fs::write(&file, capture)?;
    let mut limiter = Command::new(binary());
    succeed(limiter.arg("names").arg(file).args(arguments))
}

/// Returns the row of a name in the JSON.
fn row<'v>(document: &'v Value, name: &str) -> Result<&'v Value> {
    let rows = document["names"].as_array().context("a list")?;
    let row = rows.iter().find(|row| row["name"] == name);
    row.with_context(|| format!("no {name} in {document:#}"))
}

#[test]
fn the_names_that_real_clients_ask_for_are_read() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let pair = pair()?;
    // Otherwise offloading would make Chromium's hello one long frame here.
    pair.compute_checksums()?;
    let _server = start(&pair, directory)?;
    // Takes the QUIC datagrams, and does not answer.
    let silent = pair
        .server
        .enter(|| Ok(UdpSocket::bind("10.77.0.1:443")?))?;
    let recorder = Recorder::new(&pair.server, SERVER_INTERFACE)?;
    curl(&pair, "https://tls12.example", &["--tls-max", "1.2"])?;
    curl(&pair, "https://TLS13.example", &["--tlsv1.3"])?;
    curl(&pair, "http://plain.example", &[])?;
    curl(
        &pair,
        "http://prior.example:8080",
        &["--http2-prior-knowledge"],
    )?;
    // curl gets an address, so it sends no name.
    curl(&pair, "https://10.77.0.1", &[])?;
    s_client(&pair, &["-servername", "client.example"])?;
    s_client(&pair, &["-noservername"])?;
    silent.set_read_timeout(Some(PATIENCE))?;
    chromium(&pair, directory, &silent)?;
    let packets = recorder.finish()?;
    drop(silent);
    let capture = PCAPNG.write(&packets);

    let document: Value = serde_json::from_str(&names(&capture, directory, &["--json"])?)?;
    for (name, how) in [
        ("tls12.example", "tls"),
        ("tls13.example", "tls"),
        ("client.example", "tls"),
        ("chromium.example", "tls"),
        ("quic.example", "quic"),
        ("plain.example", "http1"),
        ("prior.example", "http2"),
    ] {
        ensure!(row(&document, name)?["how"] == how, "{document:#}");
    }
    // Chromium sends a fake ECH extension (GREASE) to every server.
    for (name, application) in [("chromium.example", "http2"), ("quic.example", "http3")] {
        let row = row(&document, name)?;
        ensure!(row["may_be_outer"] == row["flows"], "{row}");
        let applications = row["applications"].as_array().context("a list")?;
        ensure!(applications.iter().any(|one| one == application), "{row}");
    }
    ensure!(row(&document, "tls13.example")?["may_be_outer"] == 0);
    let unread = document["unread"].as_array().context("a list")?;
    let unnamed = unread.iter().find(|row| row["reason"] == "unnamed");
    ensure!(unnamed.is_some_and(|row| row["flows"] == 2), "{document:#}");
    let malformed = unread.iter().any(|row| row["reason"] == "malformed");
    ensure!(!malformed, "{document:#}");

    // The same as text.
    let text = names(&capture, directory, &[])?;
    println!("{text}");
    ensure!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let has = |words: &str| {
        let lines = text.lines();
        let mut lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.any(|line| line.starts_with(words))
    };
    ensure!(has("plain.example http1 1 ") && has("unnamed 2 "), "{text}");
    Ok(())
}
