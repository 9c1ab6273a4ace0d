//! During a flood, a client with a DNS cookie of the server is served at its first try, though its
//! source is unknown. A client with a wrong or stale cookie is not. The secrets roll over
//! meanwhile.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::SystemTime,
};

use anyhow::{Context as _, Result, ensure};
use limiter_common::cookie::Secret;
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, dns_cookie};

use super::{
    Defence, program,
    server::{ADDRESS, Server},
};
use crate::{pair, server_for, wait};

const OLD: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const NEW: &str = "445536bcd2513298075a5d379663c962";

/// How many packets pass before the rest of the burst is reserved.
const FOR_ALL: u32 = 500;

/// The size of the flood, in packets.
const FLOOD: u32 = 700;

/// The path of the secrets is absolute, because no configuration lies beside the file.
fn configuration(secrets: &Path) -> String {
    format!(
        "\
standing: {{capacity: 4096, proven-by: list}}
dns-cookies: {{secret-file: {}}}
limits:
  Queries: {{id: total, cost: packets, match: {{protocol: udp, destination-port: 53}},
    burst: 1000, count: 1, period: 1h,
    reserve: {{familiar: 10%, fresh: 20%, retried: 50%, unknown: 50%}}}}
",
        secrets.display()
    )
}

/// A DNS client program that sends one query with a cookie.
struct Client<'p> {
    pair: &'p Pair,
    program: &'static str,
    from: IpAddr,
}

impl Client<'_> {
    /// Sends one query; returns the program's output.
    fn ask(&self, cookie: &str) -> Result<String> {
        let server = server_for(self.from)?;
        let mut command = program::command(&self.pair.client, self.program)?;
        let command = command.args(["-b", &self.from.to_string(), &format!("@{server}")]);
        let command = command.args(["a.example.test", "A", "+time=1", "+retry=0", cookie]);
        let output = command.output()?;
        Ok(String::from_utf8(output.stdout)?)
    }

    fn is_served(&self, cookie: &str) -> Result<bool> {
        Ok(self.ask(&format!("+cookie={cookie}"))?.contains(ADDRESS))
    }

    /// Gets a server cookie; returns it together with the client's.
    fn learn(&self) -> Result<String> {
        let reported = self.ask("+cookie")?;
        ensure!(reported.contains(ADDRESS), "{reported}");
        let mut words = reported.split_whitespace();
        words.find(|word| *word == "COOKIE:");
        let cookie = words
            .next()
            .with_context(|| format!("no cookie in {reported}"))?;
        ensure!(cookie.len() == 48, "{reported}");
        Ok(cookie.to_owned())
    }
}

/// Makes a client's cookie as a server with this secret did this many seconds ago.
fn made(secret: &str, client: IpAddr, age: u64) -> Result<String> {
    let bytes = u128::from_str_radix(secret, 16)?.to_be_bytes();
    let secret = Secret::new(bytes).context("no secret")?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let issued = u32::try_from(now.as_secs() - age)?;
    let cookie = dns_cookie(&secret, client, issued);
    let digits = cookie.map(|byte| format!("{byte:02x}"));
    Ok(digits.concat())
}

/// Sends queries of many unknown sources.
fn flood(pair: &Pair) -> Result<()> {
    let frames = (0..FLOOD).map(|number| {
        let source = Ipv4Addr::from(0xc612_0000 + number);
        Frame::new(source.into(), "10.77.0.1".parse()?).udp(4321, 53, b"no query")
    });
    let frames = frames.collect::<Result<Vec<_>>>()?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames)?;
    Ok(())
}

fn known(limiter: &Limiter, source: IpAddr) -> Result<Value> {
    let known = limiter.show(&["trusted", &source.to_string(), "--json"])?;
    Ok(serde_json::from_str(&known)?)
}

fn checks(limiter: &Limiter, check: &str) -> Result<u64> {
    let status = limiter.status()?;
    let count = status["standing"]["dns_cookies"][check].as_u64();
    count.with_context(|| format!("no {check} in {status:#}"))
}

fn write(secrets: &Path, text: &str) -> Result<()> {
    fs::write(secrets, text)?;
    fs::set_permissions(secrets, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

/// The client has a cookie, and is served with it alone.
fn assert_served(limiter: &Limiter, client: &Client<'_>, cookie: &str) -> Result<()> {
    let before = known(limiter, client.from)?;
    // A source that asked before may be `retried`, which ranks equally low here.
    let is_known = before["standing"] != "unknown" && before["standing"] != "retried";
    ensure!(!is_known, "{before:#}");
    let valid = checks(limiter, "valid")?;
    ensure!(client.is_served(cookie)?, "{} is not served", client.from);
    assert_eq!(checks(limiter, "valid")?, valid + 1);
    let known = known(limiter, client.from)?;
    // During a shortage, as here, a newly proven source ranks as fresh.
    ensure!(
        known["why"] == "handshake" && known["standing"] == "fresh",
        "{known:#}"
    );
    // It need not show the cookie again.
    ensure!(client.ask("+nocookie")?.contains(ADDRESS));
    assert_eq!(checks(limiter, "valid")?, valid + 1);
    Ok(())
}

#[test]
fn a_cookie_of_the_server_proves_its_client_in_a_flood() -> Result<()> {
    let pair = pair()?;
    let nsd = Server::nsd_with_secret(&pair, OLD)?;
    let directory = tempfile::tempdir()?;
    let secrets = directory.path().join("secrets");
    write(&secrets, &format!("{OLD} # the active one\n"))?;
    let defence = Defence::generic(&pair, &configuration(&secrets))?;
    let limiter = &defence.limiter;
    let client = |program, from: &str| {
        let (pair, from) = (&pair, from.parse()?);
        anyhow::Ok(Client {
            pair,
            program,
            from,
        })
    };
    let others = client("dig", "10.77.0.3")?;
    let [first, second] = [client("dig", "10.77.0.2")?, client("kdig", "fd77:1:1::1")?];
    let cookies = [first.learn()?, client("dig", "fd77:1:1::1")?.learn()?];

    flood(&pair)?;
    ensure!(limiter.status()?["standing"]["shortage"].is_object());
    ensure!(
        limiter.status()?["limits"]["Queries"]["passed_packets"].as_u64() >= Some(FOR_ALL.into())
    );
    // Not served: without a cookie, or with another client's, another server's, or an expired
    // cookie.
    ensure!(!others.ask("+nocookie")?.contains(ADDRESS));
    for (cookie, check) in [
        (cookies[0].clone(), "wrong"),
        (made(NEW, others.from, 0)?, "wrong"),
        (made(OLD, others.from, 3_700)?, "stale"),
        (made(OLD, others.from, 0)?[..40].to_owned(), "malformed"),
    ] {
        let before = checks(limiter, check)?;
        ensure!(!others.is_served(&cookie)?, "{check}");
        assert_eq!(checks(limiter, check)?, before + 1, "{check}");
    }
    assert_served(limiter, &first, &cookies[0])?;
    assert_served(limiter, &second, &cookies[1])?;

    // An invalid file changes nothing, and the status reports it.
    write(&secrets, "no secret\n")?;
    wait(|| Ok(limiter.status()?["daemon"]["secrets_error"].is_string()))
        .context("a bad file is told")?;
    limiter.show(&["untrust", &first.from.to_string()])?;
    assert_served(limiter, &first, &cookies[0])?;

    // During the roll-over both secrets are valid.
    write(&secrets, &format!("{NEW}\n{OLD}\n"))?;
    wait(|| Ok(limiter.status()?["daemon"]["secrets_error"].is_null()))
        .context("a good file is read")?;
    drop(nsd);
    let _nsd = Server::nsd_with_secret(&pair, NEW)?;
    limiter.show(&["untrust", &first.from.to_string()])?;
    assert_served(limiter, &first, &cookies[0])?;
    let renewed = first.learn()?;
    limiter.show(&["untrust", &first.from.to_string()])?;
    assert_served(limiter, &first, &renewed)?;

    // Then only the new secret is valid.
    write(&secrets, &format!("{NEW}\n"))?;
    let third = client("kdig", "10.78.0.2")?;
    let (old, new) = (made(OLD, third.from, 0)?, made(NEW, third.from, 0)?);
    wait(|| {
        if !third.is_served(&old)? {
            return Ok(true);
        }
        limiter.show(&["untrust", &third.from.to_string()])?;
        Ok(false)
    })
    .context("the old secret is gone")?;
    assert_served(limiter, &third, &new)?;
    let shown = limiter.show(&["status"])?;
    ensure!(
        shown.contains("DNS cookies of queries that reserves refused"),
        "{shown}"
    );
    defence.stop()
}
