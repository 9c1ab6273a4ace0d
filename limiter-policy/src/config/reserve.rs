//! The field `reserve` of a limit: the tokens that sources must leave in its buckets, by standing.

use limiter_common::{limit::Cost, standing::Standing, strategy::Strategy};

use super::{
    diagnostics::Position,
    fields::{Field, Given},
    node::{Node, Value},
    rate::LARGEST_FRAME,
    reader::Reader,
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

/// The reserves as the file has them.
pub(super) struct Sizes {
    /// The reserve of the standing before; `None`: invalid.
    above: Option<ReserveSize>,
    of_standings: Vec<Option<ReserveSize>>,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            above: Some(ReserveSize::NOTHING),
            of_standings: Vec::new(),
        }
    }
}

pub(super) const FIELDS: &[Field<Sizes>] = &[
    size_of(
        Standing::Familiar,
        "a percentage of the burst, 0% to 100%, with at most four decimals, or a number of tokens (0)",
    ),
    size_of(Standing::Fresh, "likewise (that of `familiar`)"),
    size_of(Standing::Retried, "likewise (that of `fresh`)"),
    size_of(Standing::Unknown, "likewise (that of `retried`)"),
    Field::refused(Standing::Proven.name(), |_| {
        Some("cannot be held back: proven sources may use all of a bucket".to_owned())
    }),
];

/// A standing without a reserve has that of the standing before.
const fn size_of(standing: Standing, manual: &'static str) -> Field<Sizes> {
    Field::<Sizes>::new(standing.name(), manual, |sizes, given| {
        sizes.above = reserved(given.reader, given.name.text, given.node);
    })
    .then(|sizes, _, _| sizes.of_standings.push(sizes.above))
}

/// Says why limits with this strategy have no reserve.
pub(super) fn why_misplaced(strategy: Strategy) -> Option<String> {
    let why = strategy.why_no_reserve()?;
    Some(format!("is not for strategy {}: {why}", strategy.name()))
}

/// Reads the reserve. It must fit the limit's `rates`.
pub(super) fn read(
    given: &mut Given<'_, '_, '_>,
    cost: Option<Cost>,
    rates: &[Rate],
) -> Option<Reserve> {
    let mut sizes = Sizes::default();
    let fields = given.map(EXPECTED, FIELDS, &mut sizes)?;
    // A misspelt field hides a reserve, so its value is unknown.
    if STANDINGS
        .iter()
        .any(|standing| fields.is_misspelt(standing.name()))
    {
        return None;
    }
    let [familiar, fresh, retried, unknown] = sizes.of_standings[..] else {
        return None;
    };
    let reserve = Reserve {
        familiar: familiar?,
        fresh: fresh?,
        retried: retried?,
        unknown: unknown?,
    };
    if reserve.smallest_step(MOST).is_none() {
        let message = format!("'{FIELD}' reserves nothing: expected {EXPECTED}");
        given.reader.error(given.name.at, message);
        return None;
    }
    for standing in STANDINGS {
        let misfits = |rate: &Rate| misfit(&reserve, standing, rate.burst, cost);
        if let Some(node) = fields.get(standing.name())
            && let Some(why) = rates.iter().find_map(misfits)
        {
            let (field, written) = (standing.name(), reserve.from(standing));
            given
                .reader
                .error(node.at, format!("invalid {field} '{written}', {why}"));
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
    given: &mut Given<'_, '_, '_>,
    reserve: Option<&Reserve>,
    beside: &str,
) {
    let in_tokens = |reserve: &Reserve| {
        let mut standings = STANDINGS.into_iter();
        standings.any(
            |standing| matches!(reserve.from(standing), ReserveSize::Tokens(tokens) if tokens > 0),
        )
    };
    if reserve.is_some_and(in_tokens) {
        let message = format!(
            "'{FIELD}' beside '{beside}' must be in percentages: how many tokens the bucket \
             holds changes with its rate"
        );
        given.reader.error(given.name.at, message);
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
