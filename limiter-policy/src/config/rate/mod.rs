//! A limit's rate: burst, count and period, or rates in one text.

pub(super) mod automatic;
mod bounds;
pub mod text;

use std::collections::HashMap;

use limiter_common::{
    limit::{Cost, MAX_LIMITS},
    strategy::Strategy,
};

pub(super) use self::{bounds::LARGEST_FRAME, text::RATE};
use super::{
    diagnostics::{FilePosition, Position},
    duration,
    node::{Node, Value},
    reader::{Fields, Reader},
};
use crate::policy::Rate;

/// The fields that an error names as missing.
pub(super) const EXPECTED: &str = "burst, count and period, or rate";

pub(super) const FIELDS: [&str; 4] = [BURST, COUNT, PERIOD, RATE];

pub(super) const BURST: &str = "burst";
pub(super) const COUNT: &str = "count";
pub(super) const PERIOD: &str = "period";

/// The context that constrains a rate. Unknown parts (`None`) are not checked.
#[derive(Clone, Copy)]
pub(super) struct RateContext {
    pub(super) cost: Option<Cost>,
    /// The rule for decisions.
    pub(super) strategy: Option<Strategy>,
}

impl RateContext {
    /// An unknown limit.
    pub(super) const UNKNOWN: Self = Self {
        cost: None,
        strategy: None,
    };
}

/// Returns whether all of a rate's fields are absent.
pub(super) fn is_absent(fields: &Fields<'_>) -> bool {
    FIELDS.iter().all(|name| fields.is_missing(name))
}

/// Reads the rates in `fields`, at least one. `owner` is the position of the limit's name.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    owner: FilePosition,
    context: RateContext,
) -> Option<Vec<Rate>> {
    let may_have_burst = refuse_burst(reader, fields, context.strategy);
    let Some((name, node)) = fields.find(RATE) else {
        // `rate` may be present under a misspelt name.
        let rate = fields.is_missing(RATE);
        let rate = rate.then(|| long(reader, fields, owner, context)).flatten();
        return Some(vec![rate.filter(|_| may_have_burst)?]);
    };
    let beside: Vec<String> = [COUNT, PERIOD]
        .iter()
        .filter(|field| fields.get(field).is_some())
        .map(|field| format!("'{field}'"))
        .collect();
    if !beside.is_empty() {
        let message = format!(
            "'{RATE}' already says what {} would: leave out one or the other",
            beside.join(" and ")
        );
        reader.error(name.at, message);
        return None;
    }
    short(reader, fields, node, context).filter(|_| may_have_burst)
}

/// Like [`read`], for a limit. Reports equal rates, since one would do. (An override needs as many rates as
/// its limit, so its rates may be equal.)
pub(super) fn read_distinct<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    owner: FilePosition,
    context: RateContext,
) -> Option<Vec<Rate>> {
    let rates = read(reader, fields, owner, context)?;
    if rates.len() > 1
        && let Some(node) = fields.get(RATE)
        && let Some(Ok(written)) = reader.scalar(node).map(text::parse)
    {
        let mut seen = HashMap::new();
        for rate in written {
            let first = seen.entry((rate.count, rate.period_ns)).or_insert(rate);
            if first.offset != rate.offset {
                let at = reader.within(node, rate.offset);
                let message = format!("duplicate rate '{}', equal to '{}'", rate.text, first.text);
                reader.error(at, message);
            }
        }
    }
    Some(rates)
}

/// Reports a burst for a strategy without one. Returns whether there is no such error.
fn refuse_burst(
    reader: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
    strategy: Option<Strategy>,
) -> bool {
    let (Some(strategy), Some((name, _))) = (strategy, fields.find(BURST)) else {
        return true;
    };
    if strategy.has_burst() {
        return true;
    }
    let message = format!(
        "'{BURST}' is not for strategy {}, whose window admits no more than '{COUNT}': leave it \
         out, or use strategy {}",
        strategy.name(),
        Strategy::Gcra.name(),
    );
    reader.error(name.at, message);
    false
}

/// Reads a rate from burst, count and period.
fn long<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    owner: FilePosition,
    context: RateContext,
) -> Option<Rate> {
    let has_burst = context.strategy.is_none_or(Strategy::has_burst);
    let needed = if context.strategy.is_some_and(Strategy::has_burst) {
        &[BURST, COUNT, PERIOD][..]
    } else {
        &[COUNT, PERIOD]
    };
    let missing: Vec<String> = needed
        .iter()
        .filter(|name| fields.is_missing(name))
        .map(|name| format!("'{name}'"))
        .collect();
    match missing.as_slice() {
        [] => {}
        [name] => (reader.problems()).report_at(owner, format!("missing field {name}")),
        names => {
            let message = format!("missing fields {}", names.join(", "));
            reader.problems().report_at(owner, message);
        }
    }
    let mut tokens = |name| tokens(reader, fields.get(name)?, name);
    let burst = has_burst.then(|| tokens(BURST)).flatten();
    let count = tokens(COUNT);
    let period_ns = fields.get(PERIOD).and_then(|node| period(reader, node));
    let wrong = bounds::wrong_parts(context, burst, count, period_ns);
    report_wrong(reader, fields, &wrong, None);
    if !wrong.is_empty() {
        return None;
    }
    let strategy = context.strategy?;
    let count = count?;
    Some(Rate {
        burst: if strategy.has_burst() { burst? } else { count },
        count,
        period_ns: period_ns?,
    })
}

/// Reads the rates in one text; a single one may have a burst beside it.
fn short<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    node: &'n Node<'n>,
    context: RateContext,
) -> Option<Vec<Rate>> {
    const EXPECTED: &str = "a rate, such as '10/minute' or '100 per 2 hours'";
    if matches!(node.value, Value::Boolean) {
        reader.unexpected(node, EXPECTED);
        return None;
    }
    let rates = match text::parse(reader.text(node, EXPECTED)?) {
        Ok(rates) => rates,
        Err(error) => {
            let at = reader.within(node, error.offset);
            let message = format!("invalid {RATE} '{}', {}", error.text, error.why);
            reader.error(at, message);
            return None;
        }
    };
    if rates.len() > MAX_LIMITS as usize {
        let message = format!(
            "{} rates, but each counts as a limit, and the maximum is {MAX_LIMITS}",
            rates.len()
        );
        reader.error(node.at, message);
        return None;
    }
    let given = fields
        .find(BURST)
        .filter(|_| context.strategy.is_some_and(Strategy::has_burst));
    let burst = match given {
        None => None,
        Some((_, node)) if rates.len() == 1 => Some(tokens(reader, node, BURST)?),
        Some((name, _)) => {
            let message = format!(
                "'{BURST}' is ambiguous beside {} rates: leave it out, and each rate has its own",
                rates.len()
            );
            reader.error(name.at, message);
            return None;
        }
    };
    let mut all_fit = true;
    let mut found = Vec::with_capacity(rates.len());
    for written in rates {
        let position = reader.within(node, written.offset);
        if written.in_bits && context.cost.is_some_and(|cost| cost != Cost::Bytes) {
            let message = format!(
                "invalid {RATE} '{}', bits are for 'cost: bytes' alone",
                written.text
            );
            reader.error(position, message);
            all_fit = false;
            continue;
        }
        let of_its_own = match context.strategy {
            Some(strategy) if written.in_bits && strategy.has_burst() => half_a_second(&written),
            _ => written.count,
        };
        let rate = Rate {
            burst: burst.unwrap_or(of_its_own),
            count: written.count,
            period_ns: written.period_ns,
        };
        let (burst, count, period) = (Some(rate.burst), Some(rate.count), Some(rate.period_ns));
        let wrong = bounds::wrong_parts(context, burst, count, period);
        all_fit &= wrong.is_empty();
        report_wrong(reader, fields, &wrong, Some((written.text, position)));
        found.push(rate);
    }
    all_fit.then_some(found)
}

/// Returns the default burst of a rate in bits: half a second of traffic, and at least the longest frame. TCP
/// sends a window at once: with a burst of a few frames, it reaches only half of the rate.
fn half_a_second(rate: &text::WrittenRate<'_>) -> u64 {
    const HALF_A_SECOND_NS: u128 = 500_000_000;
    let period_ns = u128::from(rate.period_ns.max(1));
    let bytes = u128::from(rate.count) * HALF_A_SECOND_NS / period_ns;
    u64::try_from(bytes).unwrap_or(u64::MAX).max(LARGEST_FRAME)
}

fn tokens<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>, name: &str) -> Option<u64> {
    if matches!(node.value, Value::Unsigned(0)) {
        let written = reader.scalar(node).unwrap_or_default();
        reader.error(
            node.at,
            format!("invalid {name} '{written}', {}", text::ZERO),
        );
        return None;
    }
    reader.positive(node, name)
}

/// Reports the wrong parts of a rate: at the part's own field if it has one, otherwise at the rate's
/// text.
fn report_wrong(
    reader: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
    wrong: &[(&str, String)],
    text: Option<(&str, Position)>,
) {
    for (part, message) in wrong {
        if let Some(node) = fields.get(part) {
            let written = reader.scalar(node).unwrap_or_default();
            reader.error(node.at, format!("invalid {part} '{written}', {message}"));
        } else if let Some((text, at)) = text {
            let part = if *part == BURST {
                "burst (its count)"
            } else {
                part
            };
            reader.error(at, format!("invalid {RATE} '{text}', its {part} {message}"));
        }
    }
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
