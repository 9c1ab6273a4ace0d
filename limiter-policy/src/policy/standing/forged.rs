//! Finds limits with a reserve that a forger of few known sources can exhaust.
//!
//! An IPv6 source is a range: all its addresses have its standing. But where a limit's ids are addresses,
//! each has its own bucket. So only a limit on that range, or on a larger one, bounds the forger.

use limiter_common::{address::Family, limit::Cost};

use crate::policy::{Limit, Mode, Policy};

/// This many forged known sources must leave a part of a limit to others.
pub const FORGED_SOURCES: u64 = 10;

/// The time that their bursts may exhaust a limit, in nanoseconds.
const FORGIVEN_NS: u64 = 1_000_000_000;

/// A limit that few known sources can exhaust.
#[derive(Clone, Copy, Debug)]
pub struct ExhaustibleLimit<'a> {
    /// The limit, which several sources share.
    pub limit: &'a Limit,
    /// The tightest limit on each source. It is too high for [`FORGED_SOURCES`] of them. `None`: there is
    /// none.
    pub by: Option<SourceBound<'a>>,
}

/// A bound on each source's part of a shared limit.
#[derive(Clone, Copy, Debug)]
pub struct SourceBound<'a> {
    /// The limit on each source.
    pub limit: &'a Limit,
    /// The time that [`FORGED_SOURCES`] exhaust the shared limit if each begins with its burst, in
    /// nanoseconds; `u64::MAX`: for ever.
    pub for_ns: u64,
}

impl Policy {
    /// Returns the limits with a reserve, in buckets that sources of that family share, that
    /// [`FORGED_SOURCES`] can exhaust. Limits with several rates count once.
    pub fn taken_by_few(&self, family: Family) -> impl Iterator<Item = ExhaustibleLimit<'_>> {
        let source = self.standing_in_use().unwrap_or_default().prefix(family);
        let shared = self.limits.iter().filter(move |limit| {
            // Open connections and handshakes cannot be forged, so only packets matter.
            limit.reserve.is_some()
                && limit.is_spent_by_packets()
                && limit.mode != Mode::Off
                && limit.is_first_part()
                && limit.counts_any(family)
                && shared_length(family, limit) < source
        });
        shared.filter_map(move |limit| {
            let bounds = self.limits.iter();
            let bounds = bounds.filter(|own| bounds_sources(family, own, limit, source));
            let bounds = bounds.map(|own| SourceBound {
                limit: own,
                for_ns: taken_for(own, limit),
            });
            let by = bounds.min_by_key(|bound| bound.for_ns);
            let is_bounded = by.is_some_and(|bound| bound.for_ns <= FORGIVEN_NS);
            (!is_bounded).then_some(ExhaustibleLimit { limit, by })
        })
    }
}

/// Returns how long [`FORGED_SOURCES`] exhaust `shared` if each takes all that `own` allows. It is the `t` in
/// `10 (b + r t) = B + R t`, in nanoseconds; `u64::MAX`: for ever. A connection takes at least a packet. The
/// bytes of a packet are unknown.
fn taken_for(own: &Limit, shared: &Limit) -> u64 {
    let (Some(own_rate), Some(shared_rate)) = (own.default, shared.default) else {
        return 0;
    };
    if own.cost != shared.cost && shared.cost == Cost::Bytes {
        return 0;
    }
    let times = |one: u64, other: u64| u128::from(one) * u128::from(other);
    let taken = |tokens: u64| tokens.saturating_mul(FORGED_SOURCES);
    let (own_ns, shared_ns) = (own_rate.period_ns, shared_rate.period_ns);
    let theirs = times(taken(own_rate.count), shared_ns);
    let regained = times(shared_rate.count, own_ns).saturating_sub(theirs);
    let lead = taken(own_rate.burst).saturating_sub(shared_rate.burst);
    let lead = times(own_ns, shared_ns).saturating_mul(lead.into());
    // Even if a product saturates, the time is above a second for all valid rates.
    let time = lead.checked_div(regained).unwrap_or(u128::MAX);
    time.try_into().unwrap_or(u64::MAX)
}

/// Returns whether a limit bounds the part of each source of that family, a prefix of `source` bits, in a
/// shared limit.
fn bounds_sources(family: Family, limit: &Limit, shared: &Limit, source: u8) -> bool {
    let is_in_force = match limit.mode {
        Mode::Enforce => true,
        // New limits begin in this mode, both of them.
        Mode::Observe => shared.mode == Mode::Observe,
        Mode::Off => false,
    };
    let shared_length = shared_length(family, shared);
    let length = limit.prefix_length(family);
    is_in_force
        && limit.default.is_some()
        && length.is_some_and(|length| length > shared_length && length <= source)
        && limit.counts_all(family, shared)
}

/// Returns the number of leading bits that all sources of one bucket share.
fn shared_length(family: Family, limit: &Limit) -> u8 {
    limit.prefix_length(family).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use limiter_common::address::Family;

    use crate::config;

    const ALL: &str = "All: {id: total, cost: packets, burst: 900, count: 91, period: 1s, reserve: {unknown: 50%}";

    /// Checks the limits that few forged IPv6 sources exhaust, out of these beside `ALL`.
    #[track_caller]
    fn check(more_of_all: &str, beside: &str, section: &str, expected: &[&str]) {
        check_family(Family::V6, more_of_all, beside, section, expected);
    }

    #[track_caller]
    fn check_family(
        family: Family,
        more_of_all: &str,
        beside: &str,
        section: &str,
        expected: &[&str],
    ) {
        let text = format!("{section}\nlimits:\n  {ALL}{more_of_all}}}\n{beside}\n");
        let config = config::parse(&text, "test");
        let policy = config.unwrap_or_else(|errors| panic!("{errors}")).policy;
        let reported = policy.taken_by_few(family);
        let reported: Vec<_> = reported
            .map(|taken_by_few| &*taken_by_few.limit.name)
            .collect();
        assert_eq!(reported, expected, "{text}");
    }

    fn range(length: u8, more: &str) -> String {
        format!(
            "  PacketsPerIPv6Range: {{burst: 9, count: 9, period: 1s, prefix-length: {length}{more}}}"
        )
    }

    #[test]
    fn ids_that_bound_a_source() {
        check("", "", "", &["All"]);
        for (length, expected) in [(65, &["All"][..]), (64, &[]), (48, &[])] {
            check("", &range(length, ""), "", expected);
        }
        // Larger sources need larger ranges.
        let section = "standing: {ipv6-prefix: 56}";
        check("", &range(57, ""), section, &["All"]);
        check("", &range(56, ""), section, &[]);
        for name in [
            "PacketsPerIPAddress",
            "PacketsPerIPv4Range",
            "BytesPerIPv6Range",
            "NewConnectionsPerIPv6Range",
        ] {
            let other = format!("  {name}: {{burst: 9999, count: 9, period: 1s}}");
            check("", &other, "", &["All"]);
        }
        // Addresses outside all prefixes of subscribers are not bounded.
        let subscriber = "  PacketsPerSubscriber: {burst: 9, count: 9, period: 1s}\n\
                          subscribers: {1: 192.0.2.0/24}";
        check("", subscriber, "", &["All"]);
    }

    #[test]
    fn ids_that_bound_an_address_of_ipv4() {
        let check = |beside: &str, section: &str, expected: &[&str]| {
            check_family(Family::V4, "", beside, section, expected);
        };
        check("", "", &["All"]);
        check(&range(64, ""), "standing: {ipv6-prefix: 56}", &["All"]);
        for name in ["PacketsPerIPAddress", "PacketsPerIPv4Range"] {
            let other = format!("  {name}: {{burst: 9, count: 9, period: 1s}}");
            check(&other, "standing: {ipv6-prefix: 56}", &[]);
        }
        check_family(Family::V4, ", match: {protocol: icmpv6}", "", "", &[]);
    }

    #[test]
    fn modes_and_rates_that_bound_a_source() {
        check("", &range(64, ", mode: 'off'"), "", &["All"]);
        check("", &range(64, ", mode: observe"), "", &["All"]);
        check(", mode: observe", &range(64, ", mode: observe"), "", &[]);
        check(", mode: observe", "", "", &["All"]);
        check(", mode: 'off'", "", "", &[]);
        let only_overrides = "  PacketsPerIPv6Range: {prefix-length: 64}\n\
             overrides: {'PacketsPerIPv6Range:2001:db8::/64': {burst: 9, count: 9, period: 1s}}";
        check("", only_overrides, "", &["All"]);
    }

    #[test]
    fn rates_that_leave_enough_to_others() {
        let own = |cost: &str, count: u64, period: &str| {
            let burst = if cost == "bytes" { 9_999 } else { 9 };
            format!(
                "  Own: {{id: ipAddress, cost: {cost}, burst: {burst}, count: {count}, period: {period}}}"
            )
        };
        let check = |beside: &str, expected: &[&str]| {
            check_family(Family::V4, "", beside, "", expected);
        };
        for (cost, count, period, expected) in [
            ("packets", 9, "1s", &[][..]),
            ("packets", 10, "1s", &["All"]),
            ("packets", 545, "1m", &[]),
            ("packets", 546, "1m", &["All"]),
            ("packets", 1_000_000_000, "1s", &["All"]),
            // A limit on bytes does not bound packets.
            ("bytes", 9, "1s", &["All"]),
        ] {
            check(&own(cost, count, period), expected);
        }
        let bytes = "\n  AllBytes: {id: total, cost: bytes, burst: 9999, count: 9, period: 1s, \
                     reserve: {unknown: 50%}}";
        check(&(own("packets", 9, "1s") + bytes), &[]);
        let ranges = "\n  PacketsPerIPv4Range: {burst: 9, count: 9, period: 1s}";
        check(&(own("packets", 10, "1s") + ranges), &[]);
    }

    /// Ten bursts, of 900 and more, are gone in a second if 10 burst ≤ 900 + 91 - 10 count.
    #[test]
    fn bursts_that_take_all_for_a_second() {
        for (burst, count, expected) in [
            (90, 9, None),
            (91, 1, None),
            (98, 1, None),
            (99, 1, Some(90 * 1_000_000_000 / 81)),
            (91, 9, Some(10_000_000_000)),
            (91, 10, Some(u64::MAX)),
            (90, 10, Some(u64::MAX)),
            (u64::from(u32::MAX), 1, Some(530_242_864_814_814_814)),
        ] {
            let own =
                format!("  PacketsPerIPAddress: {{burst: {burst}, count: {count}, period: 1s}}");
            let text = format!("limits:\n  {ALL}}}\n{own}\n");
            let config = config::parse(&text, "test");
            let policy = config.unwrap_or_else(|errors| panic!("{errors}")).policy;
            let mut reported = policy.taken_by_few(Family::V4);
            let reported = reported.next().map(|taken_by_few| {
                assert_eq!(taken_by_few.by.unwrap().limit.name, "PacketsPerIPAddress");
                taken_by_few.by.unwrap().for_ns
            });
            assert_eq!(reported, expected, "{text}");
        }
        // The tightest of several is named. Periods of years do not overflow.
        let years = "  PacketsPerIPAddress: {burst: 1000000, count: 1000000, period: 31104000s}\n  \
                     PacketsPerIPv4Range: {burst: 95, count: 8, period: 1s}";
        check_family(Family::V4, "", years, "", &["All"]);
    }

    #[test]
    fn limits_that_sources_share() {
        // Of IPv4 alone.
        check(", match: {destination: 192.0.2.1}", "", "", &[]);
        check(", match: {protocol: icmp}", "", "", &[]);
        let reserve = ", reserve: {unknown: 4}";
        let addresses =
            "  PacketsPerIPAddress: {burst: 9, count: 9, period: 1s, reserve: {unknown: 4}}\n";
        check("", &format!("{addresses}{}", range(64, reserve)), "", &[]);
        // A /48 bounds each source's part of all, but not of itself.
        check("", &range(48, reserve), "", &["PacketsPerIPv6Range"]);
        let own = "\n  Own: {id: ipv6RangeCIDR, prefix-length: 64, cost: packets, burst: 1, count: 9, period: 1m}";
        check("", &(range(48, reserve) + own), "", &[]);
    }
}
