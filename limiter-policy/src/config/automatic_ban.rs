//! The field `ban` of a limit: when the limit bans the sources it drops.

use std::ops::RangeInclusive;

use limiter_common::{address::Family, limit::IdFormat, standing::Standing};

use super::{
    fields::{Field, Given},
    node::Value,
    reader::{Fields, Reader},
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

/// A ban that is being read. A required time is 0 while it is unknown.
pub(super) struct BanOfLimit {
    ban: AutomaticBan,
    /// The format of the limit's ids; `None`: unknown.
    id_format: Option<IdFormat>,
}

type BanField = Field<BanOfLimit>;

pub(super) const FIELDS: &[BanField] = &[
    BanField::new(
        AFTER,
        "drops of a source by this limit, from 1 to 1000000000: `1000 drops`, or `1000` (required)",
        read_drops,
    ),
    BanField::new(WITHIN, "in this time, from 1s to 24h (required)", |of, given| {
        given.duration(&mut of.ban.within_ns, &WITHIN_NS);
    }),
    BanField::new(
        FOR,
        "the time of the first ban, from 1s to 8760h (required)",
        |of, given| given.duration(&mut of.ban.for_ns, &LENGTH_NS),
    ),
    BanField::new(
        AT_MOST,
        "the longest ban, from `for` to 8760h (24h, or a longer `for`)",
        |of, given| given.duration(&mut of.ban.at_most_ns, &LENGTH_NS),
    )
    .then(bound_length),
    BanField::new(
        ESCALATE,
        "the factor from one ban to the next: 1 to 100, up to three decimals (1)",
        read_escalation,
    ),
    BanField::new(
        RANGE_AFTER,
        "the number of addresses of an IPv6 /64 that are banned [as one](#ranges), from 2 to 65536, or `off` (16)",
        |of, given| read_members(&mut of.ban.range_after, given),
    )
    .unless(why_no_ranges),
    BanField::new(
        SITE_AFTER,
        "the number of banned /64s that have their [/48](#ranges) banned, from 2 to 65536, or `off` (`off`)",
        read_site_after,
    )
    .unless(why_no_ranges),
    BanField::new(
        ONLY,
        "`proven`: sources that were [proven](known-clients.md#the-five-standings) and are still proven or fresh \
         (all sources)",
        |of, given| {
            let known = BanOnly::ALL.map(|only| (only.name(), Some(only)));
            given.choice(&mut of.ban.only, known);
        },
    ),
    BanField::new(
        "mode",
        "`enforce`, or `observe`: only reports bans, in log and metrics",
        |of, given| given.choice(&mut of.ban.mode, BanMode::ALL.map(|mode| (mode.name(), mode))),
    ),
];

/// Reads the ban. If `id_format` is unknown (`None`), checks that depend on it are skipped. `counted` are the
/// standings of the sources that the limit counts; empty: all.
pub(super) fn read(
    given: &mut Given<'_, '_, '_>,
    id_format: Option<IdFormat>,
    counted: &[Standing],
) -> Option<AutomaticBan> {
    let mut of_limit = BanOfLimit {
        ban: AutomaticBan {
            after: 0,
            within_ns: 0,
            for_ns: 0,
            at_most_ns: 0,
            escalate: Escalation::NONE,
            range_after: Some(AutomaticBan::RANGE_AFTER),
            // A /48 may have one customer or thousands, so banning it needs an explicit setting.
            site_after: None,
            only: None,
            mode: BanMode::default(),
        },
        id_format,
    };
    let fields = given.map(EXPECTED, FIELDS, &mut of_limit)?;
    let ban = of_limit.ban;
    let missing = REQUIRED.iter().filter(|field| fields.is_missing(field));
    let missing: Vec<String> = missing.map(|field| format!("'{field}'")).collect();
    let at = given.name.at;
    match missing.as_slice() {
        [] => {}
        [field] => (given.reader).error(at, format!("missing field {field} of '{FIELD}'")),
        fields => {
            let fields = fields.join(", ");
            (given.reader).error(at, format!("missing fields {fields} of '{FIELD}'"));
        }
    }
    let may_be_banned = [Standing::Proven, Standing::Fresh];
    let bans_none = !counted.is_empty() && !counted.iter().any(|one| may_be_banned.contains(one));
    if let Some(only) = ban.only.filter(|_| bans_none) {
        let message = format!(
            "'{ONLY}: {}' bans nobody: 'match' counts no proven or fresh sources",
            only.name()
        );
        given.reader.error(at, message);
    }
    Some(ban)
}

/// Says why a limit with budgets that several sources share cannot ban: a ban would hit all of them.
pub(super) fn why_shared(id_format: IdFormat) -> Option<String> {
    let sharers = id_format.key_part()?.shared_by();
    Some(format!(
        "is not for id {}: {sharers} the budget, so the packets it drops need not come from the source that used \
         it up",
        id_format.name()
    ))
}

/// Says why the limit's sources have no IPv6 ranges.
fn why_no_ranges(of: &BanOfLimit) -> Option<String> {
    let id_format = of.id_format.filter(|format| !format.is_for(Family::V6))?;
    Some(format!(
        "is for IPv6 ranges, but id {} sees only IPv4",
        id_format.name()
    ))
}

/// Sets the default of the longest ban, or reports that it is shorter than the first.
fn bound_length<'n>(of: &mut BanOfLimit, reader: &mut Reader<'n, '_>, fields: &Fields<'n>) {
    let ban = &mut of.ban;
    let Some(node) = fields.get(AT_MOST) else {
        ban.at_most_ns = AutomaticBan::AT_MOST_NS.max(ban.for_ns);
        return;
    };
    if ban.at_most_ns != 0 && ban.at_most_ns < ban.for_ns {
        let written = reader.scalar(node).unwrap_or_default();
        let shortest = text::period(ban.for_ns);
        let message =
            format!("invalid {AT_MOST} '{written}', must be at least '{FOR}': {shortest}");
        reader.error(node.at, message);
    }
}

/// Reads a number of drops: `1000` or `1000 drops`.
fn read_drops(of: &mut BanOfLimit, given: &mut Given<'_, '_, '_>) {
    let Value::Text(text) = &given.node.value else {
        given.whole(&mut of.ban.after, DROPS);
        return;
    };
    let number = text
        .strip_suffix("drops")
        .or_else(|| text.strip_suffix("drop"))
        .map(str::trim_end)
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|number| number.parse().ok());
    if let Some(number) = number.filter(|number| DROPS.contains(number)) {
        of.ban.after = number;
    } else {
        let (least, most) = (DROPS.start(), DROPS.end());
        given.error(format!(
            "invalid {AFTER} '{text}', expected from {least} to {most}, such as '1000 drops'"
        ));
    }
}

/// Reads a factor with up to three decimals.
fn read_escalation(of: &mut BanOfLimit, given: &mut Given<'_, '_, '_>) {
    const EXPECTED: &str = "a number from 1 to 100 with up to three decimals, such as 2 or 1.5";
    if !matches!(given.node.value, Value::Unsigned(_) | Value::OtherNumber) {
        given.reader.unexpected(given.node, EXPECTED);
        return;
    }
    let written = given.reader.scalar(given.node).unwrap_or_default();
    match thousandths(written).and_then(Escalation::from_thousandths) {
        Some(factor) => of.ban.escalate = factor,
        None => given.error(format!(
            "invalid {ESCALATE} '{written}', expected {EXPECTED}"
        )),
    }
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

/// Reads the number of addresses or networks that make a range; `None`: none do.
fn read_members(members: &mut Option<u32>, given: &mut Given<'_, '_, '_>) {
    if given.reader.scalar(given.node) == Some("off") {
        *members = None;
    } else {
        let mut least = 0;
        given.whole(&mut least, MEMBERS);
        *members = Some(least).filter(|least| *least != 0).or(*members);
    }
}

fn read_site_after(of: &mut BanOfLimit, given: &mut Given<'_, '_, '_>) {
    read_members(&mut of.ban.site_after, given);
    if of.ban.site_after.is_some() && of.ban.range_after.is_none() {
        given.error(format!(
            "'{SITE_AFTER}' counts /64s that are banned as a whole, but '{RANGE_AFTER}: off' bans none"
        ));
    }
}
