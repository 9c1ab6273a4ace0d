//! The section `ip-rep`: sieves, in the vocabulary of Traffic Server's rate_limit plugin.

mod uses;

use std::ops::RangeInclusive;

use super::{
    diagnostics::FilePosition,
    fields::{self, Field, Given, MAX_AGE},
    nearest,
    node::{Node, Value},
    reader::{FirstPositions, Reader},
};
use crate::policy::{Percentage, PermaBlock, PressureOf, Sieve};

pub(super) use self::uses::check as check_uses;

const NAME: &str = "name";
const BUCKETS: &str = "buckets";
const SIZE: &str = "size";
const PERCENTAGE: &str = "percentage";
const PRESSURE: &str = "pressure";
const LIMIT: &str = "limit";
const PACKETS_PER_SECOND: &str = "packets-per-second";

/// As in Traffic Server.
const DEFAULT_BUCKETS: u8 = 10;

/// Registries allocate no shorter prefixes.
const IPV6_LENGTHS: RangeInclusive<u64> = 16..=128;

pub(super) const FIELDS: &[Field<Sieve>] = &[
    Field::new(
        NAME,
        "like that of a limit of your own (required)",
        |sieve, given| sieve.name = read_name(given).unwrap_or_default(),
    ),
    Field::new(BUCKETS, "how many lists, 1 to 99 (10)", |sieve, given| {
        given.whole(&mut sieve.buckets, 1..=Sieve::MOST_BUCKETS.into());
    }),
    Field::new(
        SIZE,
        "of the [lists](reputation.md#who-is-busy): more than `buckets`, at most 20 (0: the sieve is off)",
        read_size,
    ),
    Field::new(
        PERCENTAGE,
        "where pressure begins, in percent of the limit, below 100, or a fraction up to 1: `87.5`, `0.9` (90)",
        read_percentage,
    ),
    Field::new(
        MAX_AGE,
        "when entries age: seconds (`300`) or a duration (`5m`) (0: never)",
        |sieve, given| given.age(&mut sieve.max_age_ns),
    ),
    Field::new(
        "perma-block",
        "map: `limit` (0) and `threshold`, at most `buckets` (0: no source), for the [perma-block \
         list](reputation.md#who-is-busy), its `max-age` (0)",
        |sieve, given| {
            let expected = "a map with 'limit', 'threshold' and 'max-age'";
            given.map(expected, PERMA_BLOCK_FIELDS, sieve);
        },
    ),
    Field::new(
        "ipv6-prefix",
        "how many leading bits of an IPv6 address are scored as one, 16 to 128 (128)",
        |sieve, given| given.whole(&mut sieve.ipv6_prefix, IPV6_LENGTHS),
    ),
    Field::new(
        PRESSURE,
        "`{limit: NAME}`, a limit with id `total`, or `{packets-per-second: N}` (of each limit that uses the sieve)",
        |sieve, given| sieve.pressure = read_pressure(given),
    ),
];

const PERMA_BLOCK_FIELDS: &[Field<Sieve>] = &[
    Field::unlisted(LIMIT, |sieve, given| {
        given.whole(&mut sieve.perma_block.limit, 0..=u32::MAX.into());
    }),
    Field::unlisted("threshold", |sieve, given| {
        let most = sieve.buckets.into();
        given.whole(&mut sieve.perma_block.threshold, 0..=most);
    }),
    Field::unlisted(MAX_AGE, |sieve, given| {
        given.age(&mut sieve.perma_block.max_age_ns);
    }),
];

#[derive(Default)]
pub(super) struct IpRep {
    definitions: Vec<Definition>,
    /// Whether unreadable items may hide further sieves.
    incomplete: bool,
}

/// A sieve, and the positions of its references to other sections.
struct Definition {
    sieve: Sieve,
    position: FilePosition,
    pressure: Option<FilePosition>,
}

impl IpRep {
    /// Stands for a section with a misspelt name, or an unreadable one.
    pub(super) const fn unreadable() -> Self {
        Self {
            definitions: Vec::new(),
            incomplete: true,
        }
    }

    pub(super) fn is_used(&self) -> bool {
        let mut all = self.definitions.iter();
        all.any(|definition| definition.sieve.is_on())
    }

    fn definition(&self, name: &str) -> Option<&Definition> {
        let mut all = self.definitions.iter();
        all.find(|definition| definition.sieve.name == name)
    }

    pub(super) fn into_sieves(self) -> Vec<Sieve> {
        let sieves = self.definitions.into_iter();
        sieves.map(|definition| definition.sieve).collect()
    }
}

pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<IpRep> {
    let items = reader.items(node, "a list of sieves, each with a name")?;
    if items.is_empty() {
        let message = "no sieves: name at least one, or leave the section out";
        reader.error(node.at, message);
    }
    if items.len() > Sieve::MOST {
        let message = format!("too many sieves, the maximum is {}", Sieve::MOST);
        reader.error(node.at, message);
    }
    let mut ip_rep = IpRep::default();
    let mut seen = FirstPositions::default();
    for item in items {
        match read_sieve(reader, item, &mut seen) {
            Some(definition) => ip_rep.definitions.push(definition),
            None => ip_rep.incomplete = true,
        }
    }
    let sieves = ip_rep
        .definitions
        .iter()
        .map(|definition| &definition.sieve);
    let entries: u64 = sieves
        .filter(|sieve| sieve.is_on())
        .map(|sieve| 1 << sieve.size)
        .sum();
    if entries > Sieve::MOST_ENTRIES {
        let message = format!(
            "the entry lists of all sieves together hold {entries} entries, the maximum is {}: use \
             smaller sizes",
            Sieve::MOST_ENTRIES
        );
        reader.error(node.at, message);
    }
    Some(ip_rep)
}

/// Reads one sieve; `None` if it has no usable name.
fn read_sieve<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    seen: &mut FirstPositions<&'n str>,
) -> Option<Definition> {
    let mut sieve = Sieve {
        name: String::new(),
        buckets: DEFAULT_BUCKETS,
        size: 0,
        percentage: Percentage::default(),
        max_age_ns: 0,
        perma_block: PermaBlock::default(),
        ipv6_prefix: 128,
        pressure: None,
    };
    let expected = "a sieve: a map with 'name' and 'size'";
    let fields = fields::read(reader, node, expected, FIELDS, &mut sieve)?;
    let Some(name) = fields.get(NAME) else {
        if fields.is_missing(NAME) {
            reader.error(node.at, format!("missing field '{NAME}'"));
        }
        return None;
    };
    let text = reader.scalar(name).filter(|_| !sieve.name.is_empty())?;
    let is_first = seen.is_first(reader, text, name.at, || format!("sieve '{text}'"));
    is_first.then(|| Definition {
        position: reader.position(name.at),
        pressure: fields.get(PRESSURE).map(|node| reader.position(node.at)),
        sieve,
    })
}

/// Reads the name, even a wrong one: limits may mention it.
fn read_name(given: &mut Given<'_, '_, '_>) -> Option<String> {
    let name = given.text("a name")?;
    if !nearest::is_name(name) {
        given.error(format!(
            "invalid name '{name}', {}",
            nearest::expected_name()
        ));
    }
    Some(name.to_owned())
}

/// Reads the size, which must fit the number of lists.
fn read_size(sieve: &mut Sieve, given: &mut Given<'_, '_, '_>) {
    let most = Sieve::MOST_SIZE;
    let buckets = sieve.buckets;
    given.whole(&mut sieve.size, 0..=most.into());
    let size = sieve.size;
    if (1..=buckets).contains(&size) {
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
        given.error(format!("invalid {SIZE} '{size}', {right}"));
    }
}

/// Reads the percentage from which the pressure rises.
fn read_percentage(sieve: &mut Sieve, given: &mut Given<'_, '_, '_>) {
    let written = match given.node.value {
        Value::Unsigned(_) | Value::OtherNumber => given.reader.scalar(given.node),
        _ => None,
    };
    let Some(written) = written else {
        (given.reader).unexpected(given.node, "a number such as 90 or 0.9");
        return;
    };
    match written.parse() {
        Ok(percentage) => sieve.percentage = percentage,
        Err(error) => given.error(format!("invalid {PERCENTAGE} '{written}', {error}")),
    }
}

/// The source of the pressure as the file names it.
#[derive(Default)]
struct WrittenPressure {
    limit: Option<String>,
    packets_per_second: Option<u64>,
}

const PRESSURE_FIELDS: &[Field<WrittenPressure>] = &[
    Field::unlisted(LIMIT, |pressure, given| {
        pressure.limit = given.text("a limit's name").map(ToOwned::to_owned);
    }),
    Field::unlisted(PACKETS_PER_SECOND, |pressure, given| {
        pressure.packets_per_second = given.reader.positive(given.node, PACKETS_PER_SECOND);
    }),
];

/// Reads the source of the sieve's pressure.
fn read_pressure(given: &mut Given<'_, '_, '_>) -> Option<PressureOf> {
    const EXPECTED: &str = "{limit: NAME} or {packets-per-second: N}";
    let mut pressure = WrittenPressure::default();
    let fields = given.map(EXPECTED, PRESSURE_FIELDS, &mut pressure)?;
    let are_present = [LIMIT, PACKETS_PER_SECOND].map(|field| !fields.is_missing(field));
    match are_present {
        [true, true] => given.error(format!("only one of the two: expected {EXPECTED}")),
        [false, false] => given.error(format!("nothing to measure: expected {EXPECTED}")),
        _ => {}
    }
    let packets = pressure
        .packets_per_second
        .map(PressureOf::PacketsPerSecond);
    pressure.limit.map(PressureOf::Limit).or(packets)
}
