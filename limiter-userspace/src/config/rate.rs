//! Burst, count and period.

use limiter_common::{
    limit::Cost,
    strategy::gcra::{Gcra, MAX_BURST_OFFSET, MAX_TOKENS_PER_NS},
};

use super::{
    diagnostics::Position,
    duration,
    node::{Node, Value},
    reader::{Fields, Reader},
};
use crate::policy::Rate;

/// The fields of a rate.
pub(super) const FIELDS: [&str; 3] = [BURST, COUNT, PERIOD];

const BURST: &str = "burst";
const COUNT: &str = "count";
const PERIOD: &str = "period";

/// The longest Ethernet frame without jumbo frames or a VLAN tag, in bytes as the limits
/// count them: 14 of header, 1500 of payload, without the checksum.
const LARGEST_FRAME: u64 = 1514;

/// Whether none of a rate's fields is there.
pub(super) fn is_absent(fields: &Fields<'_>) -> bool {
    FIELDS.iter().all(|name| fields.is_missing(name))
}

/// The rate in `fields`, of a limit whose name stands at `owner`; `cost` is `None` when the
/// limit is not known, and then what depends on it is not checked.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    owner: Position,
    cost: Option<Cost>,
) -> Option<Rate> {
    let missing: Vec<String> = FIELDS
        .iter()
        .filter(|name| fields.is_missing(name))
        .map(|name| format!("'{name}'"))
        .collect();
    match missing.as_slice() {
        [] => {}
        [name] => reader.error(owner, format!("missing field {name}")),
        names => reader.error(owner, format!("missing fields {}", names.join(", "))),
    }
    let mut positive = |name| {
        let node = fields.get(name)?;
        Some((reader.positive(node, name)?, node))
    };
    let burst = positive(BURST);
    let count = positive(COUNT);
    let period = fields
        .get(PERIOD)
        .and_then(|node| Some((period(reader, node)?, node)));
    let wrong = wrong_parts(
        cost,
        burst.map(|(burst, _)| burst),
        count.map(|(count, _)| count),
        period.map(|(period, _)| period),
    );
    for (name, message) in &wrong {
        if let Some(node) = fields.get(name) {
            let written = reader.scalar(node).unwrap_or_default();
            reader.error(node.at, format!("invalid {name} '{written}', {message}"));
        }
    }
    if !wrong.is_empty() {
        return None;
    }
    Some(Rate {
        burst: burst?.0,
        count: count?.0,
        period_ns: period?.0,
    })
}

fn period<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<u64> {
    const EXPECTED: &str = "a duration, such as '1s' or '1h30m'";
    if matches!(node.value, Value::Boolean) {
        reader.unexpected(node, EXPECTED);
        return None;
    }
    let written = reader.text(node, EXPECTED)?;
    match duration::parse(written) {
        Ok(ns) => Some(ns),
        Err(error) => {
            reader.error(node.at, format!("invalid {PERIOD} '{written}', {error}"));
            None
        }
    }
}

/// Which of the parts do not fit the limit or each other, and what would be right. `None`
/// is a part that is missing or wrong by itself, and nothing is said of it.
fn wrong_parts(
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
                "must be at least {LARGEST_FRAME} bytes: a larger Ethernet frame than the \
                 burst could never pass"
            ),
        ));
        burst = None;
    }
    let Some(period_ns) = period_ns else {
        return wrong;
    };
    if period_ns > MAX_BURST_OFFSET {
        wrong.push((
            PERIOD,
            "must be at most 1281023h: that is 146 years".to_owned(),
        ));
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
            format!("must be at most {most} for this period: {per_ns} a nanosecond"),
        ));
        return wrong;
    }
    let Some(burst) = burst else {
        return wrong;
    };
    // The datapath's own arithmetic says how much fits its 64 bits.
    if let Some(one) = Gcra::new(1, count, period_ns) {
        let most = MAX_BURST_OFFSET / one.emission_interval;
        if burst > most {
            wrong.push((
                BURST,
                format!(
                    "must be at most {most} for this count and period: a larger bucket would \
                     take over a century to refill"
                ),
            ));
        }
    }
    wrong
}

/// The most tokens a nanosecond that a limit may add.
///
/// Packets and connections come at most one a nanosecond: the clock tells no two of them
/// apart within one, and no interface carries that many. Bytes come faster than the clock
/// ticks (1 GB/s is one a nanosecond); there the datapath counts in fractions of a
/// nanosecond, down to the one that its 64 bits allow.
const fn tokens_per_ns(cost: Cost) -> u64 {
    match cost {
        Cost::Packets | Cost::NewConnections => 1,
        Cost::Bytes => MAX_TOKENS_PER_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_cost() -> impl Strategy<Value = Cost> {
        prop_oneof![
            Just(Cost::Packets),
            Just(Cost::Bytes),
            Just(Cost::NewConnections)
        ]
    }

    /// Numbers of every magnitude.
    fn number() -> impl Strategy<Value = u64> {
        (1u64..=i64::MAX as u64, 0u32..63).prop_map(|(value, shift)| (value >> shift).max(1))
    }

    proptest! {
        #[test]
        fn the_datapath_can_count_every_accepted_rate(
            cost in any_cost(), burst in number(), count in number(), period_ns in number(),
        ) {
            if wrong_parts(Some(cost), Some(burst), Some(count), Some(period_ns)).is_empty() {
                prop_assert!(Gcra::new(burst, count, period_ns).is_some());
            }
        }

        #[test]
        fn no_more_is_refused_than_the_datapath_needs(
            burst in LARGEST_FRAME..1 << 62, count in number(), period_ns in number(),
        ) {
            prop_assume!(period_ns <= MAX_BURST_OFFSET);
            if Gcra::new(burst, count, period_ns).is_some() {
                let wrong = wrong_parts(Some(Cost::Bytes), Some(burst), Some(count), Some(period_ns));
                prop_assert_eq!(wrong, vec![]);
            }
        }
    }
}
