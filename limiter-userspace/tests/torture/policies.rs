//! Configurations to reload: in all of them an address has the same budget, and the same list is
//! blocked.

use std::path::Path;

use fastrand::Rng;

/// The budget of each address that is under test.
pub(crate) const BURST: u64 = 2_000;
pub(crate) const PER_SECOND: u64 = 400;

/// None of these can be put in force.
const BROKEN: [&str; 5] = [
    "",
    "limits: {PacketsPerIPAddress: {burst: 2000",
    "limits: {PacketsPerIPAddress: {burst: 0, count: 400, period: 1s}}",
    "limits: {PacketsPerIPAdress: {burst: 2000, count: 400, period: 1s}}",
    "limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}}\nsubscribers: nobody\n",
];

/// The limit under test, and some others in any order: none of them drops a packet of the clients.
/// Whom `feed` lists is blocked.
pub(crate) fn good(rng: &mut Rng, feed: &Path) -> String {
    let rate = rng.u64(1..1_000);
    let custom = "{id: ipAddress, cost: packets, match: {protocol: udp, destination-port: 53}";
    let mut others = vec![
        "  BytesPerIPAddress: {burst: 900000000, count: 900000000, period: 1s}\n".to_owned(),
        "  NewConnectionsPerIPAddress: {burst: 10, count: 1, period: 1s}\n".to_owned(),
        format!("  PacketsPerIPv6Range: {{burst: 5, count: {rate}, period: 1s}}\n"),
        format!("  DnsQueries: {custom}, burst: 5, count: {rate}, period: 1s}}\n"),
        format!(
            "  Watched: {{id: ipv4RangeCIDR, cost: packets, burst: 10, count: {rate}, \
             period: 1s, mode: observe}}\n"
        ),
        format!(
            "  Everyone: {{id: total, cost: packets, burst: 1000000, count: {}, period: 1s}}\n",
            100_000 + rate
        ),
    ];
    rng.shuffle(&mut others);
    others.truncate(rng.usize(..=others.len()));
    let tested =
        format!("  PacketsPerIPAddress: {{burst: {BURST}, count: {PER_SECOND}, period: 1s}}\n");
    others.insert(rng.usize(..=others.len()), tested);
    let limits = others.concat();
    let overrides = (0..rng.u8(..4)).map(|host| {
        format!("  PacketsPerIPAddress:192.0.2.{host}: {{burst: 9, count: {rate}, period: 1s}}\n")
    });
    let overrides: Vec<_> = overrides.collect();
    let lists = format!(
        "lists: [{{name: suspects, file: {}}}]\nblock: suspects\n",
        feed.display()
    );
    if overrides.is_empty() {
        return format!("{lists}limits:\n{limits}");
    }
    format!("{lists}limits:\n{limits}overrides:\n{}", overrides.concat())
}

/// One that is refused.
pub(crate) fn broken(rng: &mut Rng) -> &'static str {
    BROKEN[rng.usize(..BROKEN.len())]
}
