//! The bounds of counts, periods and bursts.

use limiter_common::{
    limit::Cost,
    strategy::{
        Strategy,
        gcra::{Gcra, MAX_BURST_OFFSET, MAX_TOKENS_PER_NS},
    },
};

use super::{BURST, COUNT, PERIOD, RateContext};

/// The longest Ethernet frame without jumbo frames or a VLAN tag, in bytes as limits count them: 14 of header
/// and 1500 of payload, without the checksum.
pub(in super::super) const LARGEST_FRAME: u64 = 1514;

/// The error for a period.
const TOO_LONG: &str = "must be at most 1281023h (146 years)";

/// Returns the parts that do not fit the limit or each other, each with the correction. A missing or already
/// wrong part (`None`) is not checked.
pub(super) fn wrong_parts(
    context: RateContext,
    burst: Option<u64>,
    count: Option<u64>,
    period_ns: Option<u64>,
) -> Vec<(&'static str, String)> {
    match context.strategy {
        None => Vec::new(),
        Some(strategy) if strategy.has_burst() => {
            wrong_of_gcra(context.cost, burst, count, period_ns)
        }
        Some(strategy) => wrong_of_window(strategy, context.cost, count, period_ns),
    }
}

/// Returns the [`wrong_parts`] of a window that admits `count` in `period_ns`.
fn wrong_of_window(
    strategy: Strategy,
    cost: Option<Cost>,
    count: Option<u64>,
    period_ns: Option<u64>,
) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if period_ns.is_some_and(|period_ns| period_ns > strategy.longest_period()) {
        wrong.push((PERIOD, too_long(strategy)));
    }
    let Some(count) = count else {
        return wrong;
    };
    let most = strategy.largest_count();
    if cost == Some(Cost::Bytes) && count < LARGEST_FRAME {
        let message = format!(
            "must be at least {LARGEST_FRAME} bytes: an Ethernet frame larger than the window \
             admits could never pass"
        );
        wrong.push((COUNT, message));
    } else if count > most {
        let (name, instead) = (strategy.name(), strategy.above_largest_count());
        let message = format!("must be at most {most} for strategy {name}{instead}");
        wrong.push((COUNT, message));
    }
    wrong
}

/// Returns the error for a period that overflows the strategy's arithmetic.
fn too_long(strategy: Strategy) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    if strategy.longest_period() == MAX_BURST_OFFSET {
        return TOO_LONG.to_owned();
    }
    let (hours, name) = (strategy.longest_period() / HOUR, strategy.name());
    let days = hours / 24;
    format!("must be at most {hours}h ({days} days) for strategy {name}")
}

/// Returns the [`wrong_parts`] of a GCRA bucket.
fn wrong_of_gcra(
    cost: Option<Cost>,
    burst: Option<u64>,
    count: Option<u64>,
    period_ns: Option<u64>,
) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let mut burst = burst;
    if let (Some(Cost::Bytes), Some(1..LARGEST_FRAME)) = (cost, burst) {
        wrong.push((
            BURST,
            format!(
                "must be at least {LARGEST_FRAME} bytes: an Ethernet frame larger than the burst \
                 could never pass"
            ),
        ));
        burst = None;
    }
    let Some(period_ns) = period_ns else {
        return wrong;
    };
    if period_ns > MAX_BURST_OFFSET {
        wrong.push((PERIOD, TOO_LONG.to_owned()));
        return wrong;
    }
    let (Some(cost), Some(count)) = (cost, count) else {
        return wrong;
    };
    let per_ns = tokens_per_ns(cost);
    let most = per_ns.saturating_mul(period_ns);
    if count > most {
        wrong.push((
            COUNT,
            format!("must be at most {most} for this period: {per_ns} per nanosecond"),
        ));
        return wrong;
    }
    let Some(burst) = burst else {
        return wrong;
    };
    // Ask the datapath's own arithmetic, so that both agree on the bound of 64 bits.
    if let Some(one) = Gcra::new(1, count, period_ns) {
        let most = MAX_BURST_OFFSET / one.emission_interval;
        if burst > most {
            wrong.push((
                BURST,
                format!(
                    "must be at most {most} for this count and period: a larger bucket would take \
                     more than a century to refill"
                ),
            ));
        }
    }
    wrong
}

/// Returns the most tokens that may come back per nanosecond.
///
/// Packets and connections: one per nanosecond. The clock cannot distinguish more, and no interface
/// carries that many. Bytes come faster (1 GB/s is one per nanosecond), so the datapath counts them
/// in fractions of a nanosecond, as small as its 64 bits allow.
const fn tokens_per_ns(cost: Cost) -> u64 {
    match cost {
        Cost::Packets
        | Cost::NewConnections
        | Cost::Connections
        | Cost::Handshakes
        | Cost::NewNames => 1,
        Cost::Bytes => MAX_TOKENS_PER_NS,
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::strategy::{Parameters, Strategy};

    use super::*;
    use proptest::prelude::{Strategy as _, *};

    fn any_cost() -> impl proptest::strategy::Strategy<Value = Cost> {
        prop_oneof![
            Just(Cost::Packets),
            Just(Cost::Bytes),
            Just(Cost::NewConnections)
        ]
    }

    /// Numbers of every magnitude.
    fn number() -> impl proptest::strategy::Strategy<Value = u64> {
        (1u64..=i64::MAX as u64, 0u32..63).prop_map(|(value, shift)| (value >> shift).max(1))
    }

    proptest! {
        #[test]
        fn the_datapath_can_count_every_accepted_rate(
            cost in any_cost(), burst in number(), count in number(), period_ns in number(),
        ) {
            if wrong_of_gcra(Some(cost), Some(burst), Some(count), Some(period_ns)).is_empty() {
                prop_assert!(Gcra::new(burst, count, period_ns).is_some());
            }
        }

        #[test]
        fn windows_are_accepted_that_the_datapath_can_count(
            strategy in prop::sample::select(Strategy::ALL[1..].to_vec()),
            count in number(),
            period_ns in number(),
        ) {
            let wrong = wrong_of_window(strategy, Some(Cost::Packets), Some(count), Some(period_ns));
            let parameters = Parameters::new(strategy, count, count, period_ns);
            prop_assert_eq!(wrong.is_empty(), parameters.is_some(), "{:?}", wrong);
        }

        #[test]
        fn no_more_is_refused_than_the_datapath_needs(
            burst in LARGEST_FRAME..1 << 62, count in number(), period_ns in number(),
        ) {
            prop_assume!(period_ns <= MAX_BURST_OFFSET);
            if Gcra::new(burst, count, period_ns).is_some() {
                let wrong = wrong_of_gcra(Some(Cost::Bytes), Some(burst), Some(count), Some(period_ns));
                prop_assert_eq!(wrong, vec![]);
            }
        }
    }
}
