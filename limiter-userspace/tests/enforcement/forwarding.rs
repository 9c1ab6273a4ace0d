//! A host that forwards cannot make SYN cookies for other hosts, and the daemon says so. With the
//! remedy that it names, nftables' synproxy, clients connect through a flood that never reaches the
//! server.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    num::NonZeroU32,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Load, Namespace, Pair, RawSender, SERVER_INTERFACE,
};

use crate::{PATIENCE, pair, wait};

const PORT: u16 = 7001;

/// The server behind the host, by the clients' addresses.
const SERVERS: [(&str, &str); 2] = [("10.77.0.2", "10.99.0.2"), ("fd77:1:1::1", "fd99::2")];

const BYTES: usize = 10 << 20;

/// The rules from docs/kernels.md.
const SYNPROXY: &str = "\
table inet forwarded {
  chain prerouting {
    type filter hook prerouting priority raw
    tcp dport 7001 tcp flags & (fin | syn | rst | ack) == syn notrack
  }
  chain forward {
    type filter hook forward priority filter
    tcp dport 7001 ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm
    ct state invalid drop
  }
}
";

/// A pair in which the second namespace forwards to a third one with a server.
pub(crate) struct Forwarding {
    pub(crate) pair: Pair,
    pub(crate) behind: Namespace,
}

impl Forwarding {
    pub(crate) fn new() -> Result<Self> {
        let pair = pair()?;
        let behind = Namespace::new()?;
        let host = &pair.server;
        host.ip(&[
            "link",
            "add",
            "inner0",
            "type",
            "veth",
            "peer",
            "name",
            "behind0",
            "netns",
            &behind.path(),
        ])?;
        for (namespace, interface, addresses) in [
            (host, "inner0", ["10.99.0.1/24", "fd99::1/64"]),
            (&behind, "behind0", ["10.99.0.2/24", "fd99::2/64"]),
        ] {
            for address in addresses {
                namespace.ip(&["address", "add", address, "dev", interface, "nodad"])?;
            }
            namespace.ip(&["link", "set", interface, "up"])?;
        }
        for (namespace, to, via) in [
            (&pair.client, "10.99.0.0/24", "10.77.0.1"),
            (&pair.client, "fd99::/64", "fd77::1"),
            (&behind, "10.77.0.0/24", "10.99.0.1"),
            (&behind, "fd77::/16", "fd99::1"),
        ] {
            namespace.ip(&["route", "add", to, "via", via])?;
        }
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            set(host, setting, "1")?;
        }
        Ok(Self { pair, behind })
    }

    /// Runs an echo server.
    fn serve(&self) -> Result<()> {
        let listener = self
            .behind
            .enter(|| Ok(TcpListener::bind(format!("[::]:{PORT}"))?))?;
        thread::spawn(move || {
            while let Ok((mut connection, _)) = listener.accept() {
                thread::spawn(move || {
                    let mut from = connection.try_clone()?;
                    std::io::copy(&mut from, &mut connection)?;
                    connection.shutdown(Shutdown::Write)
                });
            }
        });
        Ok(())
    }

    fn limiter(&self, deny: &str, rate: u32) -> Result<Limiter> {
        let configuration = format!(
            "limits: {{Syns: {{id: total, cost: packets, match: {{protocol: tcp, \
             destination-port: {PORT}, tcp-flags: 'syn,!ack'}}, burst: {rate}, count: {rate}, \
             period: 1s, deny: {deny}}}}}"
        );
        Limiter::start(
            Path::new(env!("CARGO_BIN_EXE_limiter")),
            &self.pair.server,
            &configuration,
            &["-i", SERVER_INTERFACE, "--mode", "generic"],
        )
    }

    /// Connects to the server and reads echoed bytes; returns how long it took to connect.
    fn visit(&self, from: &str, server: &str) -> Result<Duration> {
        let server = SocketAddr::new(server.parse()?, PORT);
        let from: IpAddr = from.parse()?;
        let begun = Instant::now();
        let mut connection = self.pair.client.enter(|| {
            let socket = socket2::Socket::new(
                socket2::Domain::for_address(server),
                socket2::Type::STREAM,
                None,
            )?;
            socket.bind(&SocketAddr::new(from, 0).into())?;
            socket.connect_timeout(&server.into(), PATIENCE)?;
            Ok(TcpStream::from(socket))
        })?;
        let took = begun.elapsed();
        connection.set_read_timeout(Some(PATIENCE))?;
        let mut writer = connection.try_clone()?;
        let sender = thread::spawn(move || {
            writer.write_all(&vec![7; BYTES])?;
            writer.shutdown(Shutdown::Write)
        });
        let mut received = Vec::new();
        connection
            .read_to_end(&mut received)
            .context("the transfer stalled")?;
        ensure!(received.len() == BYTES, "{} bytes", received.len());
        sender.join().expect("the sender does not panic")?;
        Ok(took)
    }

    /// Returns how many SYNs reached the server behind the host: each one opens a connection,
    /// completed or not.
    fn half_open(&self) -> Result<usize> {
        let output = self
            .behind
            .command("ss")
            .args(["-tanH", "state", "syn-recv"])
            .output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?.lines().count())
    }
}

pub(crate) fn set(namespace: &Namespace, name: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/net/{name}");
    namespace.enter(|| fs::write(&path, value).with_context(|| format!("cannot write {path}")))
}

pub(crate) fn nft(host: &Namespace, rules: &str) -> Result<()> {
    let mut nft: Command = host.command("nft");
    let output = nft.arg(rules).output().context("cannot run nft")?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

pub(crate) fn synproxy(host: &Namespace) -> Result<()> {
    nft(host, SYNPROXY)?;
    set(host, "netfilter/nf_conntrack_tcp_loose", "0")
}

/// SYNs of unused sources, in both families.
fn forged() -> Result<Vec<Vec<u8>>> {
    let frames = (1u16..200).flat_map(|number| {
        let v4 = (format!("10.77.0.{}", 20 + number), "10.99.0.2");
        let v6 = (format!("fd77:1:1::f:{number:x}"), "fd99::2");
        [v4, v6]
    });
    frames
        .map(|(source, server)| Frame::new(source.parse()?, server.parse()?).tcp_syn(4000, PORT, 9))
        .collect()
}

fn dropped(limiter: &Limiter) -> Result<u64> {
    let status = limiter.status()?;
    let dropped = status["limits"]["Syns"]["dropped_packets"].as_u64();
    dropped.with_context(|| status.to_string())
}

#[test]
fn synproxy_answers_for_others_behind_a_limit() -> Result<()> {
    let forwarding = Forwarding::new()?;
    synproxy(&forwarding.pair.server)?;
    forwarding.serve()?;
    // Above the flood's rate. Anything faster would be dropped early, before it costs anything.
    let limiter = forwarding.limiter("drop", 700)?;
    let flood = RawSender::new(&forwarding.pair.client, CLIENT_INTERFACE)?;
    let forged = forged()?;
    let progress = flood.progress();
    let rate = NonZeroU32::new(500).context("a rate")?;
    let load = Load::steady(rate, Duration::from_mins(5));
    let thread = thread::spawn(move || flood.send(load, &forged));
    for _ in 0..5 {
        for (from, server) in SERVERS {
            let took = forwarding.visit(from, server).context(from)?;
            assert!(took < Duration::from_millis(700), "{from}: {took:?}");
        }
    }
    let half_open = forwarding.half_open()?;
    assert_eq!(half_open, 0, "forged SYNs reached the server");
    assert_eq!(dropped(&limiter)?, 0);
    progress.stop();
    let sent = thread.join().expect("the flood does not panic")?;
    ensure!(sent.packets > 100, "{sent:?}");
    // SYNs beyond the limit do not even reach synproxy.
    let flood = RawSender::new(&forwarding.pair.client, CLIENT_INTERFACE)?;
    for _ in 0..5 {
        flood.send_frames(&self::forged()?)?;
    }
    assert!(dropped(&limiter)? > 1000, "{}", dropped(&limiter)?);
    assert!(limiter.stop()?.success());
    Ok(())
}

/// The daemon warns that such a host makes no cookies for others, and names the remedy.
#[test]
fn cookies_for_others_are_warned_of() -> Result<()> {
    const OFF: &str = "net.ipv4.tcp_syncookies is 0";
    const REPORTED: &str = "limit Syns: no socket listens here on its ports, and this host forwards \
                        (net.ipv4.ip_forward is not 0)";
    let forwarding = Forwarding::new()?;
    forwarding.serve()?;
    let limiter = forwarding.limiter("syn-cookie", 1)?;
    let wait_until = |is_reported: bool| {
        wait(|| Ok(limiter.show(&["status"])?.contains(REPORTED) == is_reported))
    };
    wait_until(true)?;
    let mut check = forwarding
        .pair
        .server
        .command(env!("CARGO_BIN_EXE_limiter"));
    let check = check.arg("check").arg(limiter.configuration()).output()?;
    let reported = String::from_utf8_lossy(&check.stderr);
    ensure!(
        check.status.success() && reported.contains(REPORTED),
        "{check:?}"
    );
    // As the warning says, refused SYNs are dropped.
    let (from, server) = SERVERS[0];
    forwarding.visit(from, server)?;
    let flood = RawSender::new(&forwarding.pair.client, CLIENT_INTERFACE)?;
    flood.send_frames(&forged()?)?;
    assert!(dropped(&limiter)? > 0);
    // A server on the host itself gets cookies.
    let host = &forwarding.pair.server;
    let listener = host.enter(|| Ok(TcpListener::bind(format!("[::]:{PORT}"))?))?;
    wait_until(false)?;
    drop(listener);
    wait_until(true)?;
    set(host, "ipv4/ip_forward", "0")?;
    set(host, "ipv6/conf/all/forwarding", "0")?;
    wait_until(false)?;
    set(host, "ipv4/tcp_syncookies", "0")?;
    wait(|| Ok(limiter.show(&["status"])?.contains(OFF)))?;
    assert!(limiter.stop()?.success());
    Ok(())
}
