//! An automatic rate in front of a slow server: the daemon finds the rate that the server can
//! sustain.

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, UdpSocket},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use limiter_host::capacity::HostFiles;
use nix::sys::socket::{setsockopt, sockopt::RcvBuf};
use serde_json::Value;
use testbed::{
    CLIENT_INTERFACE, Frame, Limiter, Load, Namespace, Pair, PinDirectory, RawSender,
    SERVER_INTERFACE,
};

const PORT: u16 = 5_300;

/// The server takes one batch after each break: 2 000 datagrams a second.
const BATCH: u64 = 20;
const BREAK: Duration = Duration::from_millis(10);

/// The offered load, in datagrams a second.
const OFFERED: u32 = 10_000;

const FLOOR: u64 = 500;

const AUTOMATIC: &str = "\
limits:
  All: {id: total, cost: packets, count: auto, floor: 500, ceiling: 100000,
    match: {protocol: udp, destination-port: 5300}}
";

const UNLIMITED: &str = "\
limits:
  All: {id: total, cost: packets, burst: 100000, count: 100000, period: 1s}
";

/// A server slower than the offered load. Dropping the value ends its thread.
struct SlowServer {
    namespace: Namespace,
    served: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SlowServer {
    fn start(namespace: &Namespace) -> Result<Self> {
        let socket = namespace.enter(|| Ok(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?))?;
        setsockopt(&socket, RcvBuf, &(32 << 10))?;
        socket.set_nonblocking(true)?;
        let (served, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let thread = {
            let (served, is_over) = (Arc::clone(&served), Arc::clone(&is_over));
            thread::spawn(move || {
                while !is_over.load(Relaxed) {
                    for _ in 0..BATCH {
                        match socket.recv(&mut [0; 64]) {
                            Ok(_) => served.fetch_add(1, Relaxed),
                            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                            Err(error) => panic!("the server cannot receive: {error}"),
                        };
                    }
                    thread::sleep(BREAK);
                }
            })
        };
        Ok(Self {
            namespace: namespace.clone(),
            served,
            is_over,
            thread: Some(thread),
        })
    }

    /// Returns how many datagrams the server handled, and how many its full socket buffer lost.
    fn so_far(&self) -> Result<(u64, u64)> {
        let overload = self
            .namespace
            .enter(|| Ok(HostFiles::open()?.overload()?))?;
        Ok((self.served.load(Relaxed), overload.receive_buffer))
    }

    /// Returns the same two counts for the time that a closure takes.
    fn during(&self, then: impl FnOnce() -> Result<()>) -> Result<(u64, u64)> {
        let (served, lost) = self.so_far()?;
        then()?;
        let (now_served, now_lost) = self.so_far()?;
        Ok((now_served - served, now_lost - lost))
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic message is on stderr.
            let _ = thread.join();
        }
    }
}

/// Offers datagrams of many sources for this number of seconds.
fn flood(pair: &Pair, seconds: u64) -> Result<()> {
    let server = "10.77.0.1".parse().context("an address")?;
    let frames = (0..997).map(|number| {
        let source = Ipv4Addr::from((172 << 24) + number * 1_663);
        Frame::new(source.into(), server).udp(4_000, PORT, b"")
    });
    let frames = frames.collect::<Result<Vec<_>>>()?;
    let load = Load::steady(OFFERED.try_into()?, Duration::from_secs(seconds));
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send(load, &frames)?;
    Ok(())
}

fn automatic(status: &Value) -> Result<(u64, &Value)> {
    let automatic = &status["limits"]["All"]["automatic"];
    let rate = automatic["rate"].as_u64();
    Ok((
        rate.with_context(|| format!("no rate: {status:#}"))?,
        automatic,
    ))
}

#[test]
fn the_daemon_finds_what_the_server_bears_and_without_it_the_floor_holds() -> Result<()> {
    let pins = PinDirectory::new()?;
    let pair = Pair::new(&["10.77.0.2/24".parse()?], &["10.77.0.1/24".parse()?])?;
    let arguments = ["-i", SERVER_INTERFACE, "--mode", "native", &pins.argument()];
    let binary = Path::new(env!("CARGO_BIN_EXE_limiter"));
    let mut limiter = Limiter::start(binary, &pair.server, UNLIMITED, &arguments)?;
    let slow = SlowServer::start(&pair.server)?;

    // About 2 000, and fewer on a busy machine.
    let (bears, lost) = slow.during(|| flood(&pair, 1))?;
    ensure!(lost > bears, "a slow server: served {bears}, lost {lost}");

    limiter.configure(AUTOMATIC)?;
    limiter.show(&["reload"])?;
    let (rate, reported) = (automatic(&limiter.status()?)?.0, limiter.show(&["status"])?);
    ensure!(rate == FLOOR, "{reported}");
    flood(&pair, 6)?;
    let (served, lost) = slow.during(|| flood(&pair, 4))?;
    let status = limiter.status()?;
    let (rate, automatic_rate) = automatic(&status)?;
    ensure!(
        (bears / 2..=3_000).contains(&rate),
        "it bears {bears}: {automatic_rate:#}"
    );
    ensure!(
        automatic_rate["overload"][0]["kind"] == "receive-buffer",
        "{automatic_rate:#}"
    );
    ensure!(automatic_rate["error"].is_null(), "{automatic_rate:#}");
    ensure!(
        served > bears * 5 / 2 && lost * 20 < served,
        "served {served}, lost {lost}: {automatic_rate:#}"
    );
    let explanation = limiter.explain("192.0.2.1")?;
    let limit = &explanation["limits"][0];
    ensure!(limit["source"] == "automatic", "{explanation:#}");
    ensure!(limit["count"].as_u64() > Some(FLOOR), "{explanation:#}");

    // A reload keeps the rate found so far; a new daemon begins at the lowest rate.
    limiter.configure(&AUTOMATIC.replace("100000", "90000"))?;
    limiter.show(&["reload"])?;
    thread::sleep(Duration::from_millis(500));
    let status = limiter.status()?;
    let (kept, automatic_rate) = automatic(&status)?;
    ensure!(
        kept >= 1_000 && automatic_rate["ceiling"] == 90_000,
        "{automatic_rate:#}"
    );

    limiter.kill()?;
    thread::sleep(Duration::from_millis(2_100));
    let (served, _) = slow.during(|| flood(&pair, 1))?;
    ensure!(
        (FLOOR / 2..=FLOOR * 5 / 4).contains(&served),
        "{served} at the floor"
    );
    let status = limiter.status()?;
    let (rate, automatic_rate) = automatic(&status)?;
    ensure!(rate == FLOOR, "{automatic_rate:#}");
    ensure!(
        automatic_rate["error"] == "no daemon runs",
        "{automatic_rate:#}"
    );
    Ok(())
}
