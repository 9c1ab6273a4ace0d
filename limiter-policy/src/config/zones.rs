//! The section `zones`: the names that limits with the id `zone` tell apart.

use std::path::Path;

use super::{
    dns_name,
    named_lines::Lines,
    node::{Node, Value},
    reader::{Reader, Seen},
    surroundings::named_path,
};
use crate::policy::{DnsName, InvalidDnsName};

const FILE: &str = "file";

/// The most zones.
pub(super) const MOST_ZONES: usize = 100_000;

const LINES: Lines<DnsName, InvalidDnsName> = Lines {
    item: "zone",
    find: |line| {
        let zone = line.split('#').next().unwrap_or_default().trim();
        (!zone.is_empty()).then_some(zone)
    },
    parse: str::parse,
};

/// Reads a list of zones, or a map with the file that has them; sorted.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
) -> Vec<DnsName> {
    let mut zones = match &node.value {
        Value::Mapping(_) => read_file(reader, node, directory).unwrap_or_default(),
        _ => read_written(reader, node),
    };
    if zones.len() > MOST_ZONES {
        reader.error(node.at, format!("too many zones: at most {MOST_ZONES}"));
    }
    zones.sort_unstable();
    zones
}

fn read_written<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Vec<DnsName> {
    let mut seen = Seen::default();
    let items = reader.one_or_more(node, "zones");
    let mut zones = Vec::with_capacity(items.len());
    for item in items {
        let zone = dns_name::read(reader, item, "a zone's name, such as 'example.com'");
        let Some(zone): Option<DnsName> = zone else {
            continue;
        };
        let what = || format!("zone '{zone}'");
        if seen.is_first(reader, zone.clone(), item.at, what) {
            zones.push(zone);
        }
    }
    zones
}

/// Reads the file, which has a zone on each line, and comments with `#`; a zone may be there twice.
fn read_file<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
) -> Option<Vec<DnsName>> {
    let fields = reader.fields(node, "a list of zones, or a map with 'file'", &[FILE])?;
    let Some(named) = fields.get(FILE) else {
        if fields.is_missing(FILE) {
            reader.error(node.at, "needs 'file', the file with a zone on each line");
        }
        return None;
    };
    let name = reader.text(named, "a file's name")?;
    let path = named_path(reader, named.at, name, directory)?;
    LINES.read(reader, named.at, &path)
}
