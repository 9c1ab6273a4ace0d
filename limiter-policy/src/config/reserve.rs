//! The field `reserve` of a limit: the tokens that sources must leave in its buckets, by standing.

use limiter_common::{limit::Cost, standing::Standing};

use super::{
    diagnostics::Position,
    node::{Node, Value},
    rate::{LARGEST_FRAME, RateContext},
    reader::{Fields, Reader},
};
use crate::policy::{Rate, Reserve, ReserveSize};

pub(super) const FIELD: &str = "reserve";

/// The standings that may be held back, from the highest.
const STANDINGS: [Standing; 4] = [
    Standing::Familiar,
    Standing::Fresh,
    Standing::Retried,
    Standing::Unknown,
];

const EXPECTED: &str = "a map, such as {familiar: 10%, unknown: 50%}";

/// Boulder's numbers are signed 64-bit integers.
const MOST: u64 = i64::MAX.unsigned_abs();

/// Reads the reserve, if present. It must fit the limit's `rates`.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    context: RateContext,
    rates: &[Rate],
) -> Option<Reserve> {
    let (name, node) = fields.find(FIELD)?;
    if let Some(strategy) = context.strategy
        && let Some(why) = strategy.why_no_reserve()
    {
        let message = format!("'{FIELD}' is not for strategy {}: {why}", strategy.name());
        reader.error(name.at, message);
        return None;
    }
    let known = STANDINGS.map(Standing::name);
    let given = reader.fields_and(node, EXPECTED, &known, &[Standing::Proven.name()])?;
    if let Some((name, _)) = given.find(Standing::Proven.name()) {
        let message = "'proven' cannot be held back: proven sources may use all of a bucket";
        reader.error(name.at, message);
        return None;
    }
    // A misspelt field hides a reserve, so its value is unknown.
    let is_misspelt = |name: &str| given.get(name).is_none() && !given.is_missing(name);
    if known.into_iter().any(is_misspelt) {
        return None;
    }
    let mut above = Some(ReserveSize::NOTHING);
    let [familiar, fresh, retried, unknown] = known.map(|name| {
        if let Some(node) = given.get(name) {
            above = reserved(reader, name, node);
        }
        above
    });
    let reserve = Reserve {
        familiar: familiar?,
        fresh: fresh?,
        retried: retried?,
        unknown: unknown?,
    };
    if reserve.smallest_step(MOST).is_none() {
        let message = format!("'{FIELD}' reserves nothing: expected {EXPECTED}");
        reader.error(name.at, message);
        return None;
    }
    for standing in STANDINGS {
        let misfits = |rate: &Rate| misfit(&reserve, standing, rate.burst, context.cost);
        if let Some(node) = given.get(standing.name())
            && let Some(why) = rates.iter().find_map(misfits)
        {
            let (field, written) = (standing.name(), reserve.from(standing));
            reader.error(node.at, format!("invalid {field} '{written}', {why}"));
        }
    }
    Some(reserve)
}

/// Reports a limit's reserve that does not fit the rate of an override at `owner`.
pub(super) fn check_override(
    reader: &mut Reader<'_, '_>,
    limit: &str,
    reserve: &Reserve,
    cost: Cost,
    rate: &Rate,
    owner: Position,
) {
    let wrong = STANDINGS.iter().find_map(|standing| {
        let why = misfit(reserve, *standing, rate.burst, Some(cost))?;
        Some((standing.name(), reserve.from(*standing), why))
    });
    if let Some((field, written, why)) = wrong {
        let message = format!("the '{FIELD}' of {limit} does not fit: {field} '{written}' {why}");
        reader.error(owner, message);
    }
}

/// Reports a reserve in tokens if the limit's rate is automatic: the burst varies, so only fractions fit.
pub(super) fn refuse_tokens(
    reader: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
    reserve: Option<&Reserve>,
    beside: &str,
) {
    let in_tokens = |reserve: &Reserve| {
        let mut standings = STANDINGS.into_iter();
        standings.any(
            |standing| matches!(reserve.from(standing), ReserveSize::Tokens(tokens) if tokens > 0),
        )
    };
    if let Some((name, _)) = fields.find(FIELD)
        && reserve.is_some_and(in_tokens)
    {
        let message = format!(
            "'{FIELD}' beside '{beside}' must be in percentages: how many tokens the bucket \
             holds changes with its rate"
        );
        reader.error(name.at, message);
    }
}

/// Reports a reserve in an override, which cannot have one.
pub(super) fn refuse_in_override(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    if let Some((name, _)) = fields.find(FIELD) {
        let message = format!(
            "'{FIELD}' belongs to the limit: there, a percentage is of each override's own burst"
        );
        reader.error(name.at, message);
    }
}

/// Reads a fraction of the burst, or tokens.
fn reserved<'n>(
    reader: &mut Reader<'n, '_>,
    name: &str,
    node: &'n Node<'n>,
) -> Option<ReserveSize> {
    const EXPECTED: &str = "a percentage of the burst, such as '10%', or tokens, such as 500";
    let text = match &node.value {
        Value::Text(text) => text,
        Value::Unsigned(_) => return reader.whole(node, name, 0..=MOST).map(ReserveSize::Tokens),
        Value::OtherNumber => {
            let written = reader.scalar(node).unwrap_or_default();
            let message = format!("invalid {name} '{written}', expected {EXPECTED}");
            reader.error(node.at, message);
            return None;
        }
        _ => {
            reader.unexpected(node, EXPECTED);
            return None;
        }
    };
    match text.parse() {
        Ok(fraction) => {
            let fraction = ReserveSize::Fraction(fraction);
            // Normalise zero.
            Some(if fraction.tokens(MOST) == 0 {
                ReserveSize::NOTHING
            } else {
                fraction
            })
        }
        Err(error) if text.ends_with('%') => {
            reader.error(node.at, format!("invalid {name} '{text}', {error}"));
            None
        }
        Err(_) => {
            reader.error(
                node.at,
                format!("invalid {name} '{text}', expected {EXPECTED}"),
            );
            None
        }
    }
}

/// Says why sources of a standing cannot leave their reserve in a bucket that holds `burst`; `None`: they
/// can.
fn misfit(reserve: &Reserve, standing: Standing, burst: u64, cost: Option<Cost>) -> Option<String> {
    let above = Standing::ALL[(standing as usize).saturating_sub(1)];
    let tokens = reserve.from(standing).tokens(burst);
    let name = standing.name();
    if tokens < reserve.from(above).tokens(burst) {
        let (above, least) = (above.name(), reserve.from(above));
        return Some(format!(
            "must be at least that of {above}, {least}: a lower standing leaves at least as much"
        ));
    }
    let left = burst.saturating_sub(tokens);
    if left == 0 && cost == Some(Cost::Connections) {
        return Some(format!(
            "must be below the limit of {burst}: no connection of {name} sources could ever be open"
        ));
    }
    if left == 0 {
        return Some(format!(
            "must be below the burst of {burst}: no packet of {name} sources could ever pass"
        ));
    }
    (cost == Some(Cost::Bytes) && left < LARGEST_FRAME).then(|| {
        format!(
            "must leave at least {LARGEST_FRAME} bytes of the burst of {burst}: a full Ethernet \
             frame of {name} sources could never pass"
        )
    })
}
