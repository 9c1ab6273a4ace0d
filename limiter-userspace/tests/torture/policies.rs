//! Configurations to reload. In all of them, an address has the same budget, one address has a
//! smaller budget besides by any strategy, and the same list is blocked.

use std::{net::Ipv4Addr, path::Path};

use fastrand::Rng;
use limiter_common::strategy::Strategy;

/// The budget of each address under test.
pub(crate) const BURST: u64 = 2_000;
pub(crate) const PER_SECOND: u64 = 400;

/// The address with another, smaller budget. Its strategy and rate differ between configurations.
pub(crate) const SWITCHED: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 5);

/// The average rate of that budget.
pub(crate) const SWITCHED_PER_SECOND: u64 = 100;

/// The most that its periods count.
pub(crate) const SWITCHED_COUNT: u64 = 20;

/// Custom limits that only some configurations have.
pub(crate) const AT_TIMES: [&str; 3] = ["DnsQueries", "Watched", "Everyone"];

/// Configurations that are refused.
const BROKEN: [&str; 5] = [
    "",
    "limits: {PacketsPerIPAddress: {burst: 2000",
    "limits: {PacketsPerIPAddress: {burst: 0, count: 400, period: 1s}}",
    "limits: {PacketsPerIPAdress: {burst: 2000, count: 400, period: 1s}}",
    "limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}}\nsubscribers: nobody\n",
];

/// Makes a configuration with the limits under test and others in random order, which drop no
/// packet of the clients. The addresses of `feed` are blocked.
pub(crate) fn good(rng: &mut Rng, feed: &Path) -> String {
    let rate = rng.u64(1..1_000);
    let custom = "{id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 53}";
    let [dns_queries, watched_name, everyone] = AT_TIMES;
    let (watched, wide) = (any(rng), of_large_counts(rng));
    let mut others = vec![
        "  BytesPerIPAddress: {burst: 900000000, count: 900000000, period: 1s}\n".to_owned(),
        "  NewConnectionsPerIPAddress: {burst: 10, count: 1, period: 1s}\n".to_owned(),
        format!("  PacketsPerIPv6Range: {{burst: 5, count: {rate}, period: 1s}}\n"),
        format!("  {dns_queries}: {custom}, burst: 5, count: {rate}, period: 1s}}\n"),
        format!(
            "  {watched_name}: {{id: ipv4RangeCIDR, cost: packets, strategy: {}, {}, mode: observe}}\n",
            watched.name(),
            numbers(watched, 10, rate)
        ),
        format!(
            "  {everyone}: {{id: total, cost: packets, strategy: {}, {}}}\n",
            wide.name(),
            numbers(wide, 1_000_000 + rate, 1_000)
        ),
    ];
    rng.shuffle(&mut others);
    others.truncate(rng.usize(..=others.len()));
    let tested =
        format!("  PacketsPerIPAddress: {{burst: {BURST}, count: {PER_SECOND}, period: 1s}}\n");
    let strategy = any(rng);
    let switched = format!(
        "  Switched: {{id: ipAddress, cost: packets, strategy: {}}}\n",
        strategy.name()
    );
    for limit in [tested, switched] {
        others.insert(rng.usize(..=others.len()), limit);
    }
    let limits = others.concat();
    let overrides = (0..rng.u8(..4)).map(|host| {
        format!("  PacketsPerIPAddress:192.0.2.{host}: {{burst: 9, count: {rate}, period: 1s}}\n")
    });
    let mut overrides: Vec<_> = overrides.collect();
    let count = rng.u64(SWITCHED_COUNT / 2..=SWITCHED_COUNT);
    let numbers = numbers(strategy, count, count * 1_000 / SWITCHED_PER_SECOND);
    overrides.push(format!("  Switched:{SWITCHED}: {{{numbers}}}\n"));
    let lists = format!(
        "lists: [{{name: suspects, file: {}}}]\nblock: suspects\n",
        feed.display()
    );
    format!("{lists}limits:\n{limits}overrides:\n{}", overrides.concat())
}

fn any(rng: &mut Rng) -> Strategy {
    Strategy::ALL[rng.usize(..Strategy::ALL.len())]
}

/// Picks a strategy without a log.
fn of_large_counts(rng: &mut Rng) -> Strategy {
    match any(rng) {
        Strategy::MovingWindow => Strategy::SlidingWindowCounter,
        other => other,
    }
}

/// Returns the fields for `count` packets in `period_ms`.
fn numbers(strategy: Strategy, count: u64, period_ms: u64) -> String {
    let burst = match strategy {
        Strategy::Gcra => format!("burst: {count}, "),
        Strategy::FixedWindow | Strategy::MovingWindow | Strategy::SlidingWindowCounter => {
            String::new()
        }
    };
    format!("{burst}count: {count}, period: {period_ms}ms")
}

/// Picks a configuration that is refused.
pub(crate) fn broken(rng: &mut Rng) -> &'static str {
    BROKEN[rng.usize(..BROKEN.len())]
}
