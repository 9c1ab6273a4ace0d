//! Reads the fields of a sieve, each on its own. An invalid field is reported and gets its default.

use std::ops::RangeInclusive;

use super::{
    super::{
        max_age,
        node::{Node, Value},
        reader::{Fields, Reader},
    },
    BUCKETS, IPV6_PREFIX, PERCENTAGE, PERMA_BLOCK, PRESSURE, SIZE,
};
use crate::policy::{Percentage, PermaBlock, PressureOf, Sieve};

const LIMIT: &str = "limit";
const THRESHOLD: &str = "threshold";
const PACKETS_PER_SECOND: &str = "packets-per-second";

/// As in Traffic Server.
const DEFAULT_BUCKETS: u8 = 10;

/// Registries allocate no shorter prefixes.
const IPV6_LENGTHS: RangeInclusive<u64> = 16..=128;

/// Reads buckets and size, which must fit each other.
pub(super) fn size<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> (u8, u8) {
    let most = Sieve::MOST_SIZE;
    let buckets = small(reader, fields, BUCKETS, 1..=Sieve::MOST_BUCKETS.into());
    let size = small(reader, fields, SIZE, 0..=most.into()).unwrap_or(0);
    let buckets = buckets.unwrap_or(DEFAULT_BUCKETS);
    if let Some(node) = fields.get(SIZE)
        && size > 0
        && size <= buckets
    {
        let right = if buckets < most {
            format!(
                "must be from {} to {most}, or 0 (off): above the {buckets} {BUCKETS}, since each \
                 holds half as many as the next",
                buckets + 1
            )
        } else {
            format!(
                "must be above the {buckets} {BUCKETS} and at most {most}: use at most {} \
                 {BUCKETS}",
                most - 1
            )
        };
        reader.error(node.at, format!("invalid {SIZE} '{size}', {right}"));
    }
    (buckets, size)
}

/// Reads the percentage from which the pressure rises.
pub(super) fn percentage<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Percentage {
    let Some(node) = fields.get(PERCENTAGE) else {
        return Percentage::default();
    };
    let written = match node.value {
        Value::Unsigned(_) | Value::OtherNumber => reader.scalar(node),
        _ => None,
    };
    let Some(written) = written else {
        reader.unexpected(node, "a number such as 90 or 0.9");
        return Percentage::default();
    };
    written.parse().unwrap_or_else(|error| {
        reader.error(
            node.at,
            format!("invalid {PERCENTAGE} '{written}', {error}"),
        );
        Percentage::default()
    })
}

pub(super) fn perma_block<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    buckets: u8,
) -> PermaBlock {
    let mut perma_block = PermaBlock::default();
    let expected = "a map with 'limit', 'threshold' and 'max-age'";
    let Some(node) = fields.get(PERMA_BLOCK) else {
        return perma_block;
    };
    let Some(fields) = reader.fields(node, expected, &[LIMIT, THRESHOLD, max_age::FIELD]) else {
        return perma_block;
    };
    if let Some(node) = fields.get(LIMIT)
        && let Some(limit) = reader.whole(node, LIMIT, 0..=u32::MAX.into())
        && let Ok(limit) = u32::try_from(limit)
    {
        perma_block.limit = limit;
    }
    if let Some(threshold) = small(reader, &fields, THRESHOLD, 0..=buckets.into()) {
        perma_block.threshold = threshold;
    }
    perma_block.max_age_ns = max_age::read(reader, &fields);
    perma_block
}

/// Reads how many bits of an IPv6 source are scored.
pub(super) fn ipv6_prefix<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> u8 {
    small(reader, fields, IPV6_PREFIX, IPV6_LENGTHS).unwrap_or(128)
}

/// Reads the source of the sieve's pressure.
pub(super) fn pressure<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Option<PressureOf> {
    const EXPECTED: &str = "{limit: NAME} or {packets-per-second: N}";
    let node = fields.get(PRESSURE)?;
    let fields = reader.fields(node, EXPECTED, &[LIMIT, PACKETS_PER_SECOND])?;
    match (fields.get(LIMIT), fields.get(PACKETS_PER_SECOND)) {
        (Some(limit), None) => {
            let name = reader.text(limit, "a limit's name")?;
            Some(PressureOf::Limit(name.to_owned()))
        }
        (None, Some(packets)) => {
            let packets = reader.positive(packets, PACKETS_PER_SECOND)?;
            Some(PressureOf::PacketsPerSecond(packets))
        }
        (Some(_), Some(_)) => {
            reader.error(node.at, format!("only one of the two: expected {EXPECTED}"));
            None
        }
        (None, None) => {
            if fields.is_missing(LIMIT) && fields.is_missing(PACKETS_PER_SECOND) {
                reader.error(node.at, format!("nothing to measure: expected {EXPECTED}"));
            }
            None
        }
    }
}

/// Reads a whole number from a range that fits a byte.
fn small<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    name: &str,
    range: RangeInclusive<u64>,
) -> Option<u8> {
    let node: &Node<'_> = fields.get(name)?;
    let number = reader.whole(node, name, range)?;
    u8::try_from(number).ok()
}
