//! The section `ip-rep`: sieves, in the vocabulary of Traffic Server's rate_limit plugin.

mod fields;
mod uses;

use super::{
    diagnostics::FilePosition,
    max_age,
    node::Node,
    reader::{Fields, FirstPositions, Name, Reader},
    spelling,
};
use crate::policy::Sieve;

pub(super) use self::uses::check as check_uses;

const NAME: &str = "name";
const BUCKETS: &str = "buckets";
const SIZE: &str = "size";
const PERCENTAGE: &str = "percentage";
const PERMA_BLOCK: &str = "perma-block";
const IPV6_PREFIX: &str = "ipv6-prefix";
const PRESSURE: &str = "pressure";

const FIELDS: [&str; 8] = [
    NAME,
    BUCKETS,
    SIZE,
    PERCENTAGE,
    max_age::FIELD,
    PERMA_BLOCK,
    IPV6_PREFIX,
    PRESSURE,
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
    let fields = reader.fields(node, "a sieve: a map with 'name' and 'size'", &FIELDS)?;
    let name = read_name(reader, node, &fields);
    let (buckets, size) = fields::size(reader, &fields);
    let percentage = fields::percentage(reader, &fields);
    let max_age_ns = max_age::read(reader, &fields);
    let perma_block = fields::perma_block(reader, &fields, buckets);
    let ipv6_prefix = fields::ipv6_prefix(reader, &fields);
    let pressure = fields::pressure(reader, &fields);
    let name = name?;
    if !seen.is_first(reader, name.text, name.at, || {
        format!("sieve '{}'", name.text)
    }) {
        return None;
    }
    Some(Definition {
        position: reader.position(name.at),
        pressure: fields.get(PRESSURE).map(|node| reader.position(node.at)),
        sieve: Sieve {
            name: name.text.to_owned(),
            buckets,
            size,
            percentage,
            max_age_ns,
            perma_block,
            ipv6_prefix,
            pressure,
        },
    })
}

fn read_name<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    fields: &Fields<'n>,
) -> Option<Name<'n>> {
    let Some(named) = fields.get(NAME) else {
        if fields.is_missing(NAME) {
            reader.error(node.at, format!("missing field '{NAME}'"));
        }
        return None;
    };
    let name = Name {
        text: reader.text(named, "a name")?,
        at: named.at,
    };
    if !spelling::is_name(name.text) {
        let message = format!(
            "invalid name '{}', {}",
            name.text,
            spelling::expected_name()
        );
        reader.error(name.at, message);
    }
    Some(name)
}
