//! The section `names`: the treatment of a connection's data until its name is known, and the table of
//! cached DNS names.

use std::ops::RangeInclusive;

use limiter_common::cached_names::{MOST_LINES, WAYS};

use super::{duration, length, node::Node, reader::Reader};
use crate::policy::{CachedNames, UntilKnown};

const TLS: &str = "tls";
const UNTIL_KNOWN: &str = "until-known";
const KNOWN: &str = "known";
const CAPACITY: &str = "capacity";
const FOR: &str = "for";

/// Eight bytes each: at most 1 GiB.
const CAPACITIES: RangeInclusive<u64> = 1024..=MOST_LINES as u64 * WAYS as u64;

const MINUTE_NS: u64 = 60_000_000_000;

/// A name's time is refreshed only every few seconds, and has 24 bits.
const CACHED_FOR_NS: RangeInclusive<u64> = MINUTE_NS..=30 * 24 * 60 * MINUTE_NS;

pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
) -> (UntilKnown, CachedNames) {
    const EXPECTED: &str = "a map such as {tls: {until-known: hold}}";
    let fields = reader.fields(node, EXPECTED, &[TLS, KNOWN]);
    let Some(fields) = fields else {
        return Default::default();
    };
    let of_tls = fields.get(TLS);
    let of_tls = of_tls.and_then(|node| reader.fields(node, EXPECTED, &[UNTIL_KNOWN]));
    let known = UntilKnown::ALL.map(|value| (value.name(), value));
    let until_known =
        of_tls.and_then(|fields| reader.choice(fields.get(UNTIL_KNOWN)?, UNTIL_KNOWN, known));
    let cached_names = fields
        .get(KNOWN)
        .map(|node| read_cached_names(reader, node));
    (
        until_known.unwrap_or_default(),
        cached_names.unwrap_or_default(),
    )
}

/// Reads the size of the table of cached names, and the time that a name stays in it.
fn read_cached_names<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> CachedNames {
    let mut names = CachedNames::default();
    let expected = "a map such as {capacity: 1048576, for: 24h}";
    let Some(fields) = reader.fields(node, expected, &[CAPACITY, FOR]) else {
        return names;
    };
    if let Some(node) = fields.get(CAPACITY)
        && let Some(capacity) = reader.whole(node, CAPACITY, CAPACITIES)
    {
        names.capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
    }
    let cached_for = length::read(reader, &fields, FOR, &CACHED_FOR_NS, duration::parse);
    names.cached_for_ns = cached_for.unwrap_or(names.cached_for_ns);
    names
}
