//! The section `names`: the treatment of a connection's data until its name is known, and the table of
//! cached DNS names.

use std::ops::RangeInclusive;

use limiter_common::cached_names::{MOST_LINES, WAYS};

use super::fields::{Field, Given};
use crate::policy::{CachedNames, UntilKnown};

/// Eight bytes each: at most 1 GiB.
const CAPACITIES: RangeInclusive<u64> = 1024..=MOST_LINES as u64 * WAYS as u64;

const MINUTE_NS: u64 = 60_000_000_000;

/// A name's time is refreshed only every few seconds, and has 24 bits.
const CACHED_FOR_NS: RangeInclusive<u64> = MINUTE_NS..=30 * 24 * 60 * MINUTE_NS;

/// The fields of the section, in one line of the manual.
const FIELDS: [Field<(UntilKnown, CachedNames)>; 2] = [
    Field::unlisted("tls", |(until_known, _), given| {
        given.map(EXPECTED, &TLS_FIELDS, until_known);
    }),
    Field::unlisted("known", |(_, names), given| {
        let expected = "a map such as {capacity: 1048576, for: 24h}";
        given.map(expected, &CACHE_FIELDS, names);
    }),
];

const TLS_FIELDS: [Field<UntilKnown>; 1] = [Field::unlisted("until-known", |value, given| {
    given.choice(value, UntilKnown::ALL.map(|value| (value.name(), value)));
})];

const CACHE_FIELDS: [Field<CachedNames>; 2] = [
    Field::unlisted("capacity", |names, given| {
        given.whole(&mut names.capacity, CAPACITIES);
    }),
    Field::unlisted("for", |names, given| {
        given.duration(&mut names.cached_for_ns, &CACHED_FOR_NS);
    }),
];

const EXPECTED: &str = "a map such as {tls: {until-known: hold}}";

pub(super) fn read(given: &mut Given<'_, '_, '_>) -> (UntilKnown, CachedNames) {
    let mut read = Default::default();
    given.map(EXPECTED, &FIELDS, &mut read);
    read
}
