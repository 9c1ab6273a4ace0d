//! How much a limit lets pass: burst, count and period, or rates in one text.

mod bounds;
pub mod text;

use std::collections::HashMap;

use limiter_common::{
    limit::{Cost, MAX_LIMITS},
    strategy::Strategy,
};

pub(super) use self::text::RATE;
use super::{
    diagnostics::Position,
    duration,
    node::{Node, Value},
    reader::{Fields, Reader},
};
use crate::policy::Rate;

/// The fields of a rate.
pub(super) const FIELDS: [&str; 4] = [BURST, COUNT, PERIOD, RATE];

const BURST: &str = "burst";
const COUNT: &str = "count";
const PERIOD: &str = "period";

/// What a rate is of. Of what is `None` nothing is known, and what depends on it is not checked.
#[derive(Clone, Copy)]
pub(super) struct Held {
    /// What the limit counts.
    pub(super) cost: Option<Cost>,
    /// By which rule.
    pub(super) strategy: Option<Strategy>,
}

impl Held {
    /// Of a limit that is not known.
    pub(super) const UNKNOWN: Self = Self {
        cost: None,
        strategy: None,
    };
}

/// Whether none of a rate's fields is there.
pub(super) fn is_absent(fields: &Fields<'_>) -> bool {
    FIELDS.iter().all(|name| fields.is_missing(name))
}

/// The rates in `fields`, at least one, of a limit whose name stands at `owner`.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    owner: Position,
    held: Held,
) -> Option<Vec<Rate>> {
    let may_have_burst = refuse_burst(reader, fields, held.strategy);
    let Some((name, node)) = fields.named(RATE) else {
        // Under a misspelt name there may be a text.
        let rate = fields.is_missing(RATE);
        let rate = rate.then(|| long(reader, fields, owner, held)).flatten();
        return Some(vec![rate.filter(|_| may_have_burst)?]);
    };
    let beside: Vec<String> = [COUNT, PERIOD]
        .iter()
        .filter(|field| fields.get(field).is_some())
        .map(|field| format!("'{field}'"))
        .collect();
    if !beside.is_empty() {
        let message = format!(
            "'{RATE}' says what {} would: leave out the one or the other",
            beside.join(" and ")
        );
        reader.error(name.at, message);
        return None;
    }
    short(reader, fields, node, held).filter(|_| may_have_burst)
}

/// The same, of a limit, of whose rates no two are the same: one of them would do. (An override
/// has as many as its limit, whatever it needs.)
pub(super) fn read_distinct<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    owner: Position,
    held: Held,
) -> Option<Vec<Rate>> {
    let rates = read(reader, fields, owner, held)?;
    if rates.len() > 1
        && let Some(node) = fields.get(RATE)
        && let Some(Ok(written)) = reader.scalar(node).map(text::parse)
    {
        let mut seen = HashMap::new();
        for rate in written {
            let first = seen.entry((rate.count, rate.period_ns)).or_insert(rate);
            if first.offset != rate.offset {
                let at = reader.within(node, rate.offset);
                let message = format!("duplicate rate '{}', which is '{}'", rate.text, first.text);
                reader.error(at, message);
            }
        }
    }
    Some(rates)
}

/// Notes a burst of what has none, and whether there is no such.
fn refuse_burst(
    reader: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
    strategy: Option<Strategy>,
) -> bool {
    let (Some(strategy), Some((name, _))) = (strategy, fields.named(BURST)) else {
        return true;
    };
    if strategy.has_burst() {
        return true;
    }
    let message = format!(
        "'{BURST}' is not for strategy {}, whose window admits '{COUNT}' and no more: leave it \
         out, or use strategy {}",
        strategy.name(),
        Strategy::Gcra.name(),
    );
    reader.error(name.at, message);
    false
}

/// The rate in fields of its own.
fn long<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    owner: Position,
    held: Held,
) -> Option<Rate> {
    let has_burst = held.strategy.is_none_or(Strategy::has_burst);
    let needed = if held.strategy.is_some_and(Strategy::has_burst) {
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
        [name] => reader.error(owner, format!("missing field {name}")),
        names => reader.error(owner, format!("missing fields {}", names.join(", "))),
    }
    let mut positive = |name| reader.positive(fields.get(name)?, name);
    let burst = has_burst.then(|| positive(BURST)).flatten();
    let count = positive(COUNT);
    let period_ns = fields.get(PERIOD).and_then(|node| period(reader, node));
    let wrong = bounds::wrong_parts(held, burst, count, period_ns);
    note_wrong(reader, fields, &wrong, None);
    if !wrong.is_empty() {
        return None;
    }
    let strategy = held.strategy?;
    let count = count?;
    Some(Rate {
        burst: if strategy.has_burst() { burst? } else { count },
        count,
        period_ns: period_ns?,
    })
}

/// The rates in one text; one of them may have a burst beside it.
fn short<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    node: &'n Node<'n>,
    held: Held,
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
            "{} rates, but at most {MAX_LIMITS} limits fit, and each rate is one",
            rates.len()
        );
        reader.error(node.at, message);
        return None;
    }
    let given = fields
        .named(BURST)
        .filter(|_| held.strategy.is_some_and(Strategy::has_burst));
    let burst = match given {
        None => None,
        Some((_, node)) if rates.len() == 1 => Some(reader.positive(node, BURST)?),
        Some((name, _)) => {
            let message = format!(
                "'{BURST}' beside {} rates: of which? Leave it out, and the {BURST} of each is its \
                 count",
                rates.len()
            );
            reader.error(name.at, message);
            return None;
        }
    };
    let mut all_fit = true;
    let mut found = Vec::with_capacity(rates.len());
    for written in rates {
        let rate = Rate {
            burst: burst.unwrap_or(written.count),
            count: written.count,
            period_ns: written.period_ns,
        };
        let (burst, count, period) = (Some(rate.burst), Some(rate.count), Some(rate.period_ns));
        let wrong = bounds::wrong_parts(held, burst, count, period);
        all_fit &= wrong.is_empty();
        let place = reader.within(node, written.offset);
        note_wrong(reader, fields, &wrong, Some((written.text, place)));
        found.push(rate);
    }
    all_fit.then_some(found)
}

/// Notes what is wrong with parts of a rate, where these are fields of their own; with the others
/// where the text of the rate stands.
fn note_wrong(
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
                "burst, that is its count,"
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
