//! The limits that measure strategies, each in one line of a configuration.

use limiter_common::strategy::Strategy;

/// How many packets an address may send per hour, when nearly all are refused.
pub(crate) const REFUSED_COUNT: u64 = 10;

/// A lower bound on a flood's nanoseconds per packet on any machine, within a factor of ten. It
/// sets a moving window's length, so that none is refused and most packets find others in the log.
pub(crate) const FASTEST_PACKET_NS: u64 = 40;

pub(super) fn second(strategy: Strategy, count: u64) -> String {
    line(strategy, count, "1s")
}

/// Returns a moving window of `count` packets that a flood from this many sources does not exceed,
/// but does not leave empty either.
pub(super) fn moving(count: u64, sources_log2: u32) -> String {
    let period = (count * FASTEST_PACKET_NS) << sources_log2;
    line(Strategy::MovingWindow, count, &format!("{period}ns"))
}

/// Returns a limit so low that it refuses nearly all packets.
pub(super) fn refusing(strategy: Strategy) -> String {
    line(strategy, REFUSED_COUNT, "1h")
}

fn line(strategy: Strategy, count: u64, period: &str) -> String {
    let burst = match strategy {
        Strategy::Gcra => format!("burst: {count}, "),
        _ => String::new(),
    };
    format!(
        "  PacketsPerIPAddress: {{strategy: {}, {burst}count: {count}, period: {period}}}\n",
        strategy.name()
    )
}
