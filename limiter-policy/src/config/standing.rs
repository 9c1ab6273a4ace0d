//! The section `standing`: the rules for sources' standing.

use std::ops::RangeInclusive;

use limiter_common::standing::Settings;

use super::{
    duration, length,
    list_names::{self, ListNames},
    node::Node,
    reader::{Fields, FirstPositions, Reader},
};
use crate::{
    policy::{Proof, Retry, StandingSettings, Visits},
    text,
};

const CAPACITY: &str = "capacity";
const IPV6_PREFIX: &str = "ipv6-prefix";
const REMEMBER: &str = "remember";
const FRESH_FOR: &str = "fresh-for";
const VISITS: &str = "visits";
const RETRY: &str = "retry";
const PROVEN_BY: &str = "proven-by";
const PROVEN: &str = "proven";

const FIELDS: [&str; 8] = [
    CAPACITY,
    IPV6_PREFIX,
    REMEMBER,
    FRESH_FOR,
    VISITS,
    RETRY,
    PROVEN_BY,
    PROVEN,
];

const COUNT: &str = "count";
const APART: &str = "apart";
const AFTER: &str = "after";
const WITHIN: &str = "within";

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
const YEAR_NS: u64 = 8_760 * 3_600 * SECOND_NS;

/// A source takes 64 bytes: at most 1 GiB.
const CAPACITIES: RangeInclusive<u64> = 1024..=1 << 24;

/// The bits of an IPv6 address that a source may have: its upper half names it.
const PREFIXES: RangeInclusive<u64> = 16..=64;

const REMEMBER_NS: RangeInclusive<u64> = MINUTE_NS..=YEAR_NS;

/// A shorter time would not hold back a flood: a pause of a minute would begin another shortage.
const FRESH_NS: RangeInclusive<u64> = MINUTE_NS..=YEAR_NS;

/// A record has four bits for occasions.
const OCCASIONS: RangeInclusive<u64> = 1..=15;

/// A record's times are whole numbers of 2^30 nanoseconds.
const APART_NS: RangeInclusive<u64> = 2 * SECOND_NS..=YEAR_NS;

/// First tries are remembered with a resolution of 50 ms.
const RETRY_NS: RangeInclusive<u64> = 50_000_000..=Settings::LONGEST_RETRY_NS;

#[derive(Default)]
pub(super) struct Section {
    settings: StandingSettings,
    /// The lists of proven sources.
    pub(super) proven: ListNames,
}

impl Section {
    /// Returns the settings with the names of the lists.
    pub(super) fn to_settings(&self) -> StandingSettings {
        StandingSettings {
            proven: self.proven.to_names(),
            ..self.settings.clone()
        }
    }
}

pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Section {
    let mut section = Section::default();
    let expected = format!("a map with {}", FIELDS.join(", "));
    let Some(fields) = reader.fields(node, &expected, &FIELDS) else {
        return section;
    };
    let settings = &mut section.settings;
    if let Some(capacity) = whole(reader, &fields, CAPACITY, CAPACITIES) {
        settings.capacity = capacity;
    }
    if let Some(length) = whole(reader, &fields, IPV6_PREFIX, PREFIXES) {
        settings.ipv6_prefix = length;
    }
    let remember = length::read(reader, &fields, REMEMBER, &REMEMBER_NS, duration::parse);
    settings.remember_ns = remember.unwrap_or(settings.remember_ns);
    let fresh_for = length::read(reader, &fields, FRESH_FOR, &FRESH_NS, duration::parse);
    settings.fresh_for_ns = fresh_for.unwrap_or(settings.fresh_for_ns);
    if let Some(node) = fields.get(VISITS) {
        settings.visits = read_visits(reader, node, settings.remember_ns);
    } else {
        check_remembered(reader, &fields, settings);
    }
    if let Some(node) = fields.get(RETRY) {
        settings.retry = read_retry(reader, node);
    }
    if let Some(node) = fields.get(PROVEN_BY) {
        settings.proven_by = read_proofs(reader, node);
    }
    section.proven = list_names::read_field(reader, &fields, PROVEN, None);
    if let Some((name, _)) = fields.find(PROVEN)
        && !section.settings.proven_by.contains(&Proof::List)
    {
        let message = format!(
            "'{PROVEN}' has no effect: add '{}' to '{PROVEN_BY}'",
            Proof::List.name()
        );
        reader.error(name.at, message);
    }
    section
}

/// Reads a whole number, if the field is present.
fn whole<'n, T: TryFrom<u64>>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    name: &str,
    range: RangeInclusive<u64>,
) -> Option<T> {
    let number = reader.whole(fields.get(name)?, name, range)?;
    T::try_from(number).ok()
}

/// Reads the condition for familiar sources; `None`: never.
fn read_visits<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    remember_ns: u64,
) -> Option<Visits> {
    const EXPECTED: &str = "a map, such as {count: 3, apart: 1m}, or 'off'";
    if reader.scalar(node) == Some("off") {
        return None;
    }
    let mut visits = StandingSettings::default().visits?;
    let fields = reader.fields(node, EXPECTED, &[COUNT, APART])?;
    if let Some(count) = whole(reader, &fields, COUNT, OCCASIONS) {
        visits.count = count;
    }
    if let Some(apart_ns) = length::read(reader, &fields, APART, &APART_NS, duration::parse) {
        visits.apart_ns = apart_ns;
    }
    if visits.apart_ns >= remember_ns {
        let at = fields.get(APART).unwrap_or(node).at;
        let (apart, remember) = (text::period(visits.apart_ns), text::period(remember_ns));
        let message = format!(
            "invalid {APART} '{apart}', must be below '{REMEMBER}', {remember}: a source would be \
             forgotten before its second visit"
        );
        reader.error(at, message);
    }
    Some(visits)
}

/// Reports that sources are forgotten before their second visit, if the file says nothing about visits.
fn check_remembered(reader: &mut Reader<'_, '_>, fields: &Fields<'_>, settings: &StandingSettings) {
    if let Some(node) = fields.get(REMEMBER)
        && let Some(visits) = settings.visits
        && visits.apart_ns >= settings.remember_ns
    {
        let (remember, apart) = (
            text::period(settings.remember_ns),
            text::period(visits.apart_ns),
        );
        let message = format!(
            "invalid {REMEMBER} '{remember}', must be above '{APART}' of '{VISITS}', {apart}: a \
             source would be forgotten before its second visit"
        );
        reader.error(node.at, message);
    }
}

fn read_retry<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Retry {
    const EXPECTED: &str = "a map, such as {after: 200ms, within: 10s}";
    let mut retry = StandingSettings::default().retry;
    let Some(fields) = reader.fields(node, EXPECTED, &[AFTER, WITHIN]) else {
        return retry;
    };
    let after_ns = length::read(reader, &fields, AFTER, &RETRY_NS, duration::parse);
    let within_ns = length::read(reader, &fields, WITHIN, &RETRY_NS, duration::parse);
    retry.after_ns = after_ns.unwrap_or(retry.after_ns);
    retry.within_ns = within_ns.unwrap_or(retry.within_ns);
    if retry.after_ns >= retry.within_ns {
        let (after, within) = (text::period(retry.after_ns), text::period(retry.within_ns));
        let (at, message) = match fields.get(AFTER) {
            Some(node) => (
                node.at,
                format!("invalid {AFTER} '{after}', must be below '{WITHIN}', {within}"),
            ),
            None => (
                fields.get(WITHIN).unwrap_or(node).at,
                format!("invalid {WITHIN} '{within}', must be above '{AFTER}', {after}"),
            ),
        };
        reader.error(at, message);
    }
    retry
}

/// Reads the accepted proofs of a source, in a fixed order.
fn read_proofs<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Vec<Proof> {
    let known = Proof::ALL.map(|proof| (proof.name(), proof));
    let mut given = Vec::new();
    let mut seen = FirstPositions::default();
    for item in reader.one_or_more(node, "proofs") {
        if let Some(proof) = reader.choice(item, "proof", known)
            && seen.is_first(reader, proof.name(), item.at, || {
                format!("proof '{}'", proof.name())
            })
        {
            given.push(proof);
        }
    }
    let mut proofs = Proof::ALL.to_vec();
    proofs.retain(|proof| given.contains(proof));
    proofs
}
