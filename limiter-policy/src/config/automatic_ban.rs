//! The field `ban` of a limit: when the limit bans the sources it drops.

use std::ops::RangeInclusive;

use limiter_common::{address::Family, limit::IdFormat, standing::Standing};

use super::{
    duration, length,
    node::{Node, Value},
    reader::{Name, Reader},
};
use crate::{
    policy::{AutomaticBan, BanMode, BanOnly, Escalation},
    text,
};

pub(super) const FIELD: &str = "ban";

const AFTER: &str = "after";
const WITHIN: &str = "within";
const FOR: &str = "for";
const AT_MOST: &str = "at-most";
const ESCALATE: &str = "escalate";
const RANGE_AFTER: &str = "range-after";
const SITE_AFTER: &str = "site-after";
const ONLY: &str = "only";
const MODE: &str = "mode";

const FIELDS: [&str; 9] = [
    AFTER,
    WITHIN,
    FOR,
    AT_MOST,
    ESCALATE,
    RANGE_AFTER,
    SITE_AFTER,
    ONLY,
    MODE,
];

const REQUIRED: [&str; 3] = [AFTER, WITHIN, FOR];

const EXPECTED: &str = "a map, such as {after: 1000 drops, within: 10s, for: 10m}";

const SECOND_NS: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3_600 * SECOND_NS;

/// The daemon checks offenders ten times within this time, at most ten times a second.
const WITHIN_NS: RangeInclusive<u64> = SECOND_NS..=24 * HOUR_NS;

/// At most a year.
const LENGTH_NS: RangeInclusive<u64> = SECOND_NS..=8_760 * HOUR_NS;

/// The upper bound exceeds the drops that the longest `within` can record.
const DROPS: RangeInclusive<u64> = 1..=1_000_000_000;

/// A single address or network is not a range.
const MEMBERS: RangeInclusive<u64> = 2..=65_536;

/// Stands for the number if ranges are never banned.
const OFF: u32 = 0;

/// Reads `ban`, under the field's `name`. If `id_format` is unknown (`None`), checks that depend on
/// it are skipped.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    name: Name<'_>,
    node: &'n Node<'n>,
    id_format: Option<IdFormat>,
) -> Option<AutomaticBan> {
    if let Some(id_format) = id_format {
        refuse_shared(reader, name, id_format);
    }
    let fields = reader.fields(node, EXPECTED, &FIELDS)?;
    let missing: Vec<String> = REQUIRED
        .iter()
        .filter(|field| fields.is_missing(field))
        .map(|field| format!("'{field}'"))
        .collect();
    match missing.as_slice() {
        [] => {}
        [field] => reader.error(name.at, format!("missing field {field} of 'ban'")),
        fields => {
            let fields = fields.join(", ");
            reader.error(name.at, format!("missing fields {fields} of 'ban'"));
        }
    }
    let after = fields.get(AFTER).map(|node| drops(reader, node));
    let within_ns = length::read(reader, &fields, WITHIN, &WITHIN_NS, duration::parse);
    let for_ns = length::read(reader, &fields, FOR, &LENGTH_NS, duration::parse);
    let at_most_ns = length::read(reader, &fields, AT_MOST, &LENGTH_NS, duration::parse);
    if let (Some(node), Some(for_ns), Some(at_most_ns)) = (fields.get(AT_MOST), for_ns, at_most_ns)
        && at_most_ns < for_ns
    {
        let written = reader.scalar(node).unwrap_or_default();
        let shortest = text::period(for_ns);
        let message =
            format!("invalid {AT_MOST} '{written}', must be at least '{FOR}': {shortest}");
        reader.error(node.at, message);
    }
    let escalate = match fields.get(ESCALATE) {
        Some(node) => escalation(reader, node),
        None => Some(Escalation::NONE),
    };
    let range_after = match fields.get(RANGE_AFTER) {
        Some(node) => members(reader, RANGE_AFTER, node, id_format),
        None => Some(AutomaticBan::RANGE_AFTER),
    };
    let site_after = match fields.get(SITE_AFTER) {
        Some(node) => members(reader, SITE_AFTER, node, id_format),
        // A /48 may have one customer or thousands, so banning it needs an explicit setting.
        None => Some(OFF),
    };
    if let (Some(node), Some(OFF)) = (fields.get(SITE_AFTER), range_after)
        && site_after.is_some_and(|networks| networks != OFF)
    {
        let message = format!(
            "'{SITE_AFTER}' counts /64s that are banned as a whole, but '{RANGE_AFTER}: off' bans \
             none"
        );
        reader.error(node.at, message);
    }
    let only = match fields.get(ONLY) {
        Some(node) => {
            let known = BanOnly::ALL.map(|only| (only.name(), only));
            Some(reader.choice(node, ONLY, known)?)
        }
        None => None,
    };
    let mode = match fields.get(MODE) {
        Some(node) => reader.choice(node, MODE, BanMode::ALL.map(|mode| (mode.name(), mode))),
        None => Some(BanMode::default()),
    };
    let for_ns = for_ns?;
    Some(AutomaticBan {
        after: after??,
        within_ns: within_ns?,
        for_ns,
        at_most_ns: match fields.get(AT_MOST) {
            Some(_) => at_most_ns?,
            None => AutomaticBan::AT_MOST_NS.max(for_ns),
        },
        escalate: escalate?,
        range_after: Some(range_after?).filter(|addresses| *addresses != OFF),
        site_after: Some(site_after?).filter(|networks| *networks != OFF),
        only,
        mode: mode?,
    })
}

/// Reports `only: proven` in a limit that counts no proven source.
pub(super) fn check_counted(
    reader: &mut Reader<'_, '_>,
    name: Name<'_>,
    ban: &AutomaticBan,
    counted: &[Standing],
) {
    let may_be_banned = [Standing::Proven, Standing::Fresh];
    let bans_none = !counted.is_empty() && !counted.iter().any(|one| may_be_banned.contains(one));
    if let Some(only) = ban.only
        && bans_none
    {
        let message = format!(
            "'{ONLY}: {}' bans nobody: 'match' counts no proven or fresh sources",
            only.name()
        );
        reader.error(name.at, message);
    }
}

/// Reports a ban by a limit with budgets that several sources share: a ban would hit all of them.
fn refuse_shared(reader: &mut Reader<'_, '_>, name: Name<'_>, id_format: IdFormat) {
    let Some(number) = id_format.key_part() else {
        return;
    };
    let sharers = number.shared_by();
    let message = format!(
        "'ban' is not for id {}: {sharers} the budget, so the packets it drops need not come from \
         the source that used it up",
        id_format.name()
    );
    reader.error(name.at, message);
}

/// Reads a number of drops: `1000` or `1000 drops`.
fn drops<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<u64> {
    let Value::Text(text) = &node.value else {
        return reader.whole(node, AFTER, DROPS);
    };
    let number = text
        .strip_suffix("drops")
        .or_else(|| text.strip_suffix("drop"))
        .map(str::trim_end)
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|number| number.parse().ok());
    let found = number.filter(|number| DROPS.contains(number));
    if found.is_none() {
        let (least, most) = (DROPS.start(), DROPS.end());
        let message = format!(
            "invalid {AFTER} '{text}', expected from {least} to {most}, such as '1000 drops'"
        );
        reader.error(node.at, message);
    }
    found
}

/// Reads a factor with up to three decimals.
fn escalation<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Escalation> {
    const EXPECTED: &str = "a number from 1 to 100 with up to three decimals, such as 2 or 1.5";
    if !matches!(node.value, Value::Unsigned(_) | Value::OtherNumber) {
        reader.unexpected(node, EXPECTED);
        return None;
    }
    let written = reader.scalar(node)?;
    let factor = thousandths(written).and_then(Escalation::from_thousandths);
    if factor.is_none() {
        let message = format!("invalid {ESCALATE} '{written}', expected {EXPECTED}");
        reader.error(node.at, message);
    }
    factor
}

/// Returns the thousandths of a decimal number; `None`: not a number, or more than three decimals.
fn thousandths(written: &str) -> Option<u32> {
    let (whole, decimals) = written.split_once('.').unwrap_or((written, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(decimals) || decimals.len() > 3 {
        return None;
    }
    let decimals = format!("{decimals:0<3}").parse::<u32>().ok()?;
    whole
        .parse::<u32>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(decimals)
}

/// Reads the number of addresses or networks that make a range, or [`OFF`].
fn members<'n>(
    reader: &mut Reader<'n, '_>,
    field: &str,
    node: &'n Node<'n>,
    id_format: Option<IdFormat>,
) -> Option<u32> {
    if let Some(id_format) = id_format
        && !id_format.is_for(Family::V6)
    {
        let message = format!(
            "'{field}' is for IPv6 ranges, but id {} sees only IPv4",
            id_format.name()
        );
        reader.error(node.at, message);
    }
    if reader.scalar(node) == Some("off") {
        return Some(OFF);
    }
    let least = reader.whole(node, field, MEMBERS)?;
    u32::try_from(least).ok()
}
