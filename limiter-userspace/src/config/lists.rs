//! The section `lists`: addresses under a name, in the configuration and in feed files.

use std::path::{Path, PathBuf};

use ipnet::IpNet;

use super::{
    diagnostics::Problems,
    duration, limit,
    list_names::ListNames,
    nearest,
    node::Node,
    prefix,
    reader::{Fields, Reader},
    sections,
    seen::Seen,
};
use crate::{
    lists::{Format, ListSource, WhenStale},
    policy::List,
};

const NAME: &str = "name";
const CIDR: &str = "cidr";
const FILE: &str = "file";
const FORMAT: &str = "format";
const MAX_AGE: &str = "max-age";
const WHEN_STALE: &str = "when-stale";

const FIELDS: [&str; 6] = [NAME, CIDR, FILE, FORMAT, MAX_AGE, WHEN_STALE];

/// The lists that there are.
#[derive(Default)]
pub(super) struct Lists {
    /// What the configuration says of each.
    pub(super) sources: Vec<ListSource>,
    /// Every name, also of those with which something is wrong.
    names: Vec<String>,
    /// Whether the section could not be read, so that any name may be in it.
    unreadable: bool,
}

impl Lists {
    /// What is known of the lists when their section cannot be read.
    pub(super) fn unreadable() -> Self {
        Self {
            unreadable: true,
            ..Self::default()
        }
    }

    /// Notes which names are those of no list.
    pub(super) fn check(&self, named: &ListNames, problems: &mut Problems) {
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        for (name, place) in named.iter() {
            if known.contains(&name) || self.unreadable {
                continue;
            }
            let message = if known.is_empty() {
                format!("unknown list '{name}': there is no section 'lists' that has it")
            } else {
                nearest::unknown("list", name, &known)
            };
            problems.note_at(place, message);
        }
    }

    /// The lists themselves.
    pub(super) fn lists(&self) -> Vec<List> {
        self.sources
            .iter()
            .map(|source| List::new(source.name.clone(), &source.cidr))
            .collect()
    }
}

/// Reads a list of lists; the files that they name are found in `directory`, and where there is
/// none they may name none.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
) -> Option<Lists> {
    let items = reader.items(
        node,
        "a list of lists, each with 'name' and 'cidr' or 'file'",
    )?;
    if items.is_empty() {
        reader.error(
            node.at,
            "no lists: name at least one, or leave the section out",
        );
    }
    let mut lists = Lists::default();
    let mut seen = Seen::default();
    for item in items {
        let Some(fields) = reader.fields(item, "a list with 'name' and 'cidr' or 'file'", &FIELDS)
        else {
            continue;
        };
        let name = read_name(reader, item, &fields, &mut seen);
        lists.names.extend(name.clone());
        let source = ListSource {
            name: name.unwrap_or_default(),
            cidr: read_cidr(reader, &fields),
            files: read_files(reader, &fields, directory),
            format: read_format(reader, &fields),
            max_age_ns: read_max_age(reader, &fields),
            when_stale: read_when_stale(reader, &fields),
        };
        if fields.is_missing(CIDR) && fields.is_missing(FILE) {
            let message = format!("an empty list: it needs '{CIDR}' or '{FILE}'");
            reader.error(item.at, message);
        }
        lists.sources.push(source);
    }
    Some(lists)
}

fn read_name<'n>(
    reader: &mut Reader<'n, '_>,
    item: &'n Node<'n>,
    fields: &Fields<'n>,
    seen: &mut Seen<&'n str>,
) -> Option<String> {
    let Some(node) = fields.get(NAME) else {
        if fields.is_missing(NAME) {
            reader.error(item.at, format!("missing field '{NAME}'"));
        }
        return None;
    };
    let name = reader.text(node, "a list's name")?;
    if !limit::is_name(name) {
        let message = format!("invalid name '{name}', {}", limit::expected_name());
        reader.error(node.at, message);
    }
    seen.is_first(reader, name, node.at, || format!("list '{name}'"));
    Some(name.to_owned())
}

fn read_cidr<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Vec<IpNet> {
    let Some(node) = fields.get(CIDR) else {
        return Vec::new();
    };
    let items = reader.one_or_more(node, "addresses or prefixes");
    items
        .iter()
        .filter_map(|item| prefix::read(reader, item, CIDR))
        .collect()
}

fn read_files<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    directory: Option<&Path>,
) -> Vec<PathBuf> {
    let Some(node) = fields.get(FILE) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut seen = Seen::default();
    for item in reader.one_or_more(node, "files") {
        let Some(name) = reader.text(item, "a file's name") else {
            continue;
        };
        if seen.is_first(reader, name, item.at, || format!("file '{name}'")) {
            files.extend(sections::named_path(reader, item.at, name, directory));
        }
    }
    files
}

fn read_format<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Format {
    let Some(node) = of_files(reader, fields, FORMAT) else {
        return Format::default();
    };
    let known = Format::ALL.map(|format| (format.name(), format));
    reader.choice(node, FORMAT, known).unwrap_or_default()
}

fn read_max_age<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Option<u64> {
    let node = of_files(reader, fields, MAX_AGE)?;
    let text = reader.text(node, "a duration such as '24h'")?;
    match duration::parse(text) {
        Ok(ns) => Some(ns),
        Err(error) => {
            reader.error(node.at, format!("invalid {MAX_AGE} '{text}', {error}"));
            None
        }
    }
}

fn read_when_stale<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> WhenStale {
    let Some(node) = of_files(reader, fields, WHEN_STALE) else {
        return WhenStale::default();
    };
    if fields.is_missing(MAX_AGE) {
        let message = format!("'{WHEN_STALE}' has no effect without '{MAX_AGE}'");
        reader.error(node.at, message);
    }
    let known = WhenStale::ALL.map(|one| (one.name(), one));
    reader.choice(node, WHEN_STALE, known).unwrap_or_default()
}

/// A field that says something of the files, which must be there then.
fn of_files<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    field: &str,
) -> Option<&'n Node<'n>> {
    let node = fields.get(field)?;
    if fields.is_missing(FILE) {
        let message = format!("'{field}' has no effect without '{FILE}'");
        reader.error(node.at, message);
    }
    Some(node)
}
