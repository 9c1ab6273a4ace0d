//! The sections `zones` and `server-names`: the names that limits with the ids `zone` and `server-name`
//! tell apart.

use super::{
    dns_match,
    named_lines::Lines,
    node::{Node, Value},
    reader::{FirstPositions, Reader},
};
use crate::policy::{DnsName, InvalidDnsName};

const FILE: &str = "file";

const MOST: usize = 100_000;

/// A section, and the words for its content in messages.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) section: &'static str,
    one: &'static str,
    several: &'static str,
}

pub(super) const ZONES: Kind = Kind {
    section: "zones",
    one: "zone",
    several: "zones",
};

pub(super) const SERVER_NAMES: Kind = Kind {
    section: "server-names",
    one: "server name",
    several: "server names",
};

/// Reads a list of names, or a map that names a file; sorted.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    kind: Kind,
) -> Vec<DnsName> {
    let mut names = match &node.value {
        Value::Mapping(_) => read_file(reader, node, kind).unwrap_or_default(),
        _ => read_written(reader, node, kind),
    };
    if names.len() > MOST {
        let several = kind.several;
        reader.error(node.at, format!("too many {several}: at most {MOST}"));
    }
    names.sort_unstable();
    names
}

fn read_written<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>, kind: Kind) -> Vec<DnsName> {
    let mut seen = FirstPositions::default();
    let items = reader.one_or_more(node, kind.several);
    let mut names = Vec::with_capacity(items.len());
    let one = kind.one;
    let expected = format!("a {one}, such as 'example.com'");
    for item in items {
        let Some(name): Option<DnsName> = dns_match::read_name(reader, item, &expected) else {
            continue;
        };
        let describe = || format!("{one} '{name}'");
        if seen.is_first(reader, name.clone(), item.at, describe) {
            names.push(name);
        }
    }
    names
}

/// Reads the file: one name on each line, and comments with `#`. Duplicates are allowed.
fn read_file<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    Kind { one, several, .. }: Kind,
) -> Option<Vec<DnsName>> {
    let expected = format!("a list of {several}, or a map with 'file'");
    let fields = reader.fields(node, &expected, &[FILE])?;
    let Some(file) = fields.get(FILE) else {
        if fields.is_missing(FILE) {
            let message = format!("needs 'file', the file with a {one} on each line");
            reader.error(node.at, message);
        }
        return None;
    };
    let name = reader.text(file, "a file's name")?;
    let path = reader.named_path(file.at, name)?;
    let lines: Lines<DnsName, InvalidDnsName> = Lines {
        item: one,
        find: |line| {
            let name = line.split('#').next().unwrap_or_default().trim();
            (!name.is_empty()).then_some(name)
        },
        parse: str::parse,
    };
    lines.read(reader, file.at, &path)
}
