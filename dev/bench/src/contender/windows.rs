//! The limits that strategies are measured by, each in a line of a configuration.

use limiter_common::strategy::Strategy;

/// What an address may send in an hour, where nearly all of it is refused.
pub(crate) const REFUSED_COUNT: u64 = 10;

/// By this and the number of sources a moving window is as long as none is refused and most packets
/// find others in the log: a flood has fewer nanoseconds for a packet on no machine, and not ten
/// times as many.
pub(crate) const FASTEST_PACKET_NS: u64 = 40;

/// As many packets a second.
pub(super) fn second(strategy: Strategy, count: u64) -> String {
    line(strategy, count, "1s")
}

/// A moving window of so many packets, whatever the limit of the others is: one that a flood from
/// so many sources does not exceed, and that is not empty either.
pub(super) fn moving(count: u64, sources_log2: u32) -> String {
    let period = (count * FASTEST_PACKET_NS) << sources_log2;
    line(Strategy::MovingWindow, count, &format!("{period}ns"))
}

/// So few packets that nearly all are refused.
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
