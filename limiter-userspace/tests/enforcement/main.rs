//! Real traffic between two namespaces, through the program in native mode.
//!
//! The bound is the limit's own promise: over any interval, at most burst + interval /
//! emission interval is admitted. The lower one is that a client who always has more to
//! send gets 99 % of it. Needs root.

mod built_in;
mod shared;

use std::{net::IpAddr, path::Path};

use anyhow::Result;
use ipnet::IpNet;
use testbed::{Limiter, Pair, SERVER_INTERFACE};

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

fn pair() -> Result<Pair> {
    Pair::new(&networks(&CLIENTS)?, &networks(&SERVERS)?)
}

fn networks(texts: &[&str]) -> Result<Vec<IpNet>> {
    Ok(texts
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?)
}

/// The server's address in the client's family.
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

/// A limit under test, in its own units.
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

    /// The most that may be admitted between two times in nanoseconds: the tokens of the
    /// bucket and those added meanwhile, a last one in part.
    fn most(self, from_ns: u64, to_ns: u64) -> u64 {
        let added = to_ns.saturating_sub(from_ns) * self.per_second / 1_000_000_000;
        self.burst + added
    }
}

/// Holds what was admitted of a saturating client against the limit: `sent` is when the
/// client began and ended, `arrived` when the last packet reached the server; packets cost
/// `grain` tokens each.
#[track_caller]
fn assert_exact(rate: Rate, admitted: u64, sent: (u64, u64), arrived: u64, grain: u64) {
    let most = rate.most(sent.0, arrived);
    assert!(
        admitted <= most,
        "{admitted} admitted, at most {most} allowed ({rate:?})"
    );
    let least = rate.most(sent.0, sent.1) * 99 / 100 - grain;
    assert!(
        admitted >= least,
        "{admitted} admitted, at least {least} expected ({rate:?})"
    );
}
