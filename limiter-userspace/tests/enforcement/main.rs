//! Real traffic between two namespaces, through the program in native mode.
//!
//! The upper bound is the limit's promise: over any interval, at most burst + interval / emission
//! interval is admitted. The lower bound: a client that always has more to send gets 99 % of it.
//! Needs root.

#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what takes time"
)]

mod answers;
mod built_in;
mod connections;
mod devices;
mod forwarding;
mod icmp_types;
mod jumbo;
mod own_addresses;
mod own_connections;
mod packaged;
mod peers;
mod pressure;
mod quic_names;
mod sent_back;
mod shared;
mod stacked;
mod strategies;
mod superframes;
mod syn_cookies;
mod tcp_states;

use std::{
    net::IpAddr,
    panic::Location,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use ipnet::IpNet;
use testbed::{Count, Limiter, Pair, SERVER_INTERFACE, SendReport};

/// Two clients of one /24, one of another, and four IPv6 addresses in two /48s.
const CLIENTS: [&str; 7] = [
    "10.77.0.2/24",
    "10.77.0.3/24",
    "10.78.0.2/24",
    "fd77:1:1::1/64",
    "fd77:1:1:2::1/64",
    "fd77:1:1:3::1/64",
    "fd77:1:2::1/64",
];

const SERVERS: [&str; 2] = ["10.77.0.1/24", "fd77::1/64"];

/// How long a test waits for an event on a busy machine. Only failures take this long.
const PATIENCE: Duration = Duration::from_secs(90);

/// The interval between two polls of a condition.
const PACE: Duration = Duration::from_millis(50);

/// Waits until a condition holds.
#[track_caller]
fn wait(mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let caller = Location::caller();
    let begun = Instant::now();
    while !is_so()? {
        ensure!(
            begun.elapsed() < PATIENCE,
            "it does not become so: {caller}"
        );
        thread::sleep(PACE);
    }
    Ok(())
}

fn pair() -> Result<Pair> {
    Pair::new(&networks(&CLIENTS)?, &networks(&SERVERS)?)
}

fn networks(texts: &[&str]) -> Result<Vec<IpNet>> {
    Ok(texts
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?)
}

/// Returns the server's address in the client's family.
fn server_for(client: IpAddr) -> Result<IpAddr> {
    Ok(if client.is_ipv4() {
        "10.77.0.1"
    } else {
        "fd77::1"
    }
    .parse()?)
}

fn start(pair: &Pair, configuration: &str) -> Result<Limiter> {
    Limiter::start(
        Path::new(env!("CARGO_BIN_EXE_limiter")),
        &pair.server,
        configuration,
        &["-i", SERVER_INTERFACE, "--mode", "native"],
    )
}

/// A limit under test, in its own tokens.
#[derive(Clone, Copy, Debug)]
struct Rate {
    burst: u64,
    per_second: u64,
}

impl Rate {
    fn yaml(self) -> String {
        let Self { burst, per_second } = self;
        format!("{{burst: {burst}, count: {per_second}, period: 1s}}")
    }

    /// Returns the most tokens that may be admitted between two times in nanoseconds: a full bucket
    /// and the tokens added meanwhile, rounded down.
    fn most(self, from_ns: u64, to_ns: u64) -> u64 {
        let added = to_ns.saturating_sub(from_ns) * self.per_second / 1_000_000_000;
        self.burst + added
    }
}

/// When clients began and stopped sending, or the server receiving.
#[derive(Clone, Copy, Debug)]
struct Window {
    first_ns: u64,
    last_ns: u64,
    /// The time in between without saturation.
    paused: Duration,
}

impl From<SendReport> for Window {
    fn from(sent: SendReport) -> Self {
        Self {
            first_ns: sent.first_ns,
            last_ns: sent.last_ns,
            paused: sent.paused,
        }
    }
}

impl From<Count> for Window {
    fn from(count: Count) -> Self {
        Self {
            first_ns: count.first_ns,
            last_ns: count.last_ns,
            paused: Duration::ZERO,
        }
    }
}

/// Compares the packets that saturating clients got through with the limit; each packet costs
/// `grain` tokens.
#[track_caller]
fn assert_exact(rate: Rate, admitted: u64, sent: Window, arrived: Window, grain: u64) {
    // The limiter judged the packets between these times.
    let most = rate.most(sent.first_ns, arrived.last_ns);
    assert!(
        admitted <= most,
        "{admitted} admitted, at most {most} allowed ({rate:?})"
    );
    // Tokens that came back during a pause may have found the bucket full.
    let unused =
        u64::try_from(sent.paused.as_millis()).unwrap_or(u64::MAX) * rate.per_second / 1_000;
    let least = rate.most(arrived.first_ns, sent.last_ns) * 99 / 100;
    let least = least.saturating_sub(unused + grain);
    assert!(
        admitted >= least,
        "{admitted} admitted, at least {least} expected ({rate:?})"
    );
}
