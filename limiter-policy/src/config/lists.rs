//! The section `lists`: named sets of addresses, from the configuration and from feed files.

use std::{ops::RangeInclusive, path::PathBuf};

use ipnet::IpNet;
use jiff::Timestamp;

use super::{
    diagnostics::{Position, Problems},
    duration,
    list_names::ListNames,
    nearest,
    node::Node,
    prefix,
    reader::{Fields, FirstPositions, Reader},
    spelling,
    surroundings::{Surroundings, named_path},
};
use crate::{
    fraction::Fraction,
    lists::{self, Bounds, Feeds, Format, ListSource, ReadContext, WhenStale},
    policy::List,
};

const NAME: &str = "name";
const CIDR: &str = "cidr";
const FILE: &str = "file";
const FORMAT: &str = "format";
const MAX_AGE: &str = "max-age";
const WHEN_STALE: &str = "when-stale";
const MAX_COVERAGE: &str = "max-coverage";
const MAX_GROWTH: &str = "max-growth";
const MAX_LOSS: &str = "max-loss";

const FIELDS: [&str; 9] = [
    NAME,
    CIDR,
    FILE,
    FORMAT,
    MAX_AGE,
    WHEN_STALE,
    MAX_COVERAGE,
    MAX_GROWTH,
    MAX_LOSS,
];

/// The factor by which a feed may grow within a day.
const GROWTH: RangeInclusive<u64> = 2..=1000;

#[derive(Default)]
pub(super) struct Lists {
    pub(super) sources: Vec<ListSource>,
    /// The content of their files.
    pub(super) feeds: Feeds,
    /// Every list's name, even of an invalid list.
    names: Vec<String>,
    /// Whether the section is unreadable, so it may define any name.
    unreadable: bool,
}

impl Lists {
    /// Stands for an unreadable section.
    pub(super) fn unreadable() -> Self {
        Self {
            unreadable: true,
            ..Self::default()
        }
    }

    /// Reports unknown names of lists.
    pub(super) fn check(&self, named: &ListNames, problems: &mut Problems) {
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        for (name, position) in named.iter() {
            if known.contains(&name) || self.unreadable {
                continue;
            }
            let message = if known.is_empty() {
                format!(
                    "unknown list '{name}': define it in a section 'lists', such as [{{name: ours, \
                     cidr: [192.0.2.0/24]}}], or give addresses in its place"
                )
            } else {
                nearest::unknown("list", name, &known)
            };
            problems.report_at(position, message);
        }
    }

    /// Adds the list of the addresses in a field that names lists.
    pub(super) fn add_written(&mut self, named: &ListNames) {
        if let Some(list) = named.written() {
            self.sources.push(ListSource {
                name: list.name.clone(),
                cidr: list.cidr.clone(),
                files: Vec::new(),
                format: Format::default(),
                max_age_ns: None,
                when_stale: WhenStale::default(),
                bounds: Bounds::default(),
            });
        }
    }

    /// Reads a list's files. The configuration names them at these positions.
    fn read_feeds(
        &mut self,
        reader: &mut Reader<'_, '_>,
        source: &ListSource,
        positions: Vec<Position>,
        surroundings: &Surroundings<'_>,
    ) {
        let old = surroundings
            .feeds
            .get(&source.name)
            .map_or(&[][..], Vec::as_slice);
        let mut feeds = Vec::new();
        let context = ReadContext {
            now: surroundings.now,
            accepted: &[],
        };
        for (feed, at) in lists::read(source, old, |_| true, context)
            .into_iter()
            .zip(positions)
        {
            match feed {
                Ok(feed) => feeds.push(feed),
                Err(error) => reader.error(at, error.to_string()),
            }
        }
        if !feeds.is_empty() {
            self.feeds.insert(source.name.clone(), feeds);
        }
    }

    /// Returns the lists as of `now`: a feed may be stale by then.
    pub(super) fn lists(&self, now: Timestamp) -> Vec<List> {
        let feeds =
            |source: &ListSource| self.feeds.get(&source.name).map_or(&[][..], Vec::as_slice);
        let sources = self.sources.iter();
        sources
            .map(|source| source.list(feeds(source), now))
            .collect()
    }
}

/// Reads a list of lists, and the files they name.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    surroundings: &Surroundings<'_>,
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
    let mut seen = FirstPositions::default();
    for item in items {
        let Some(fields) = reader.fields(item, "a list with 'name' and 'cidr' or 'file'", &FIELDS)
        else {
            continue;
        };
        let name = read_name(reader, item, &fields, &mut seen);
        lists.names.extend(name.clone());
        let files = read_files(reader, &fields, surroundings);
        let (positions, files) = files.into_iter().unzip();
        let source = ListSource {
            name: name.unwrap_or_default(),
            cidr: read_cidr(reader, &fields),
            files,
            format: read_format(reader, &fields),
            max_age_ns: read_max_age(reader, &fields),
            when_stale: read_when_stale(reader, &fields),
            bounds: read_bounds(reader, &fields),
        };
        if fields.is_missing(CIDR) && fields.is_missing(FILE) {
            let message = format!("missing field '{CIDR}' or '{FILE}'");
            reader.error(item.at, message);
        }
        lists.read_feeds(reader, &source, positions, surroundings);
        lists.sources.push(source);
    }
    Some(lists)
}

fn read_name<'n>(
    reader: &mut Reader<'n, '_>,
    item: &'n Node<'n>,
    fields: &Fields<'n>,
    seen: &mut FirstPositions<&'n str>,
) -> Option<String> {
    let Some(node) = fields.get(NAME) else {
        if fields.is_missing(NAME) {
            reader.error(item.at, format!("missing field '{NAME}'"));
        }
        return None;
    };
    let name = reader.text(node, "a list's name")?;
    if !spelling::is_name(name) {
        let message = format!("invalid name '{name}', {}", spelling::expected_name());
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
    surroundings: &Surroundings<'_>,
) -> Vec<(Position, PathBuf)> {
    let Some(node) = fields.get(FILE) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut seen = FirstPositions::default();
    for item in reader.one_or_more(node, "files") {
        let Some(name) = reader.text(item, "a file's name") else {
            continue;
        };
        if seen.is_first(reader, name, item.at, || format!("file '{name}'")) {
            let path = named_path(reader, item.at, name, surroundings.directory);
            files.extend(path.map(|path| (item.at, path)));
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

fn read_bounds<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Bounds {
    let mut bounds = Bounds::default();
    if let Some(node) = of_files(reader, fields, MAX_COVERAGE)
        && let Some(fractions) =
            reader.fields(node, "a map of 'ipv4' and 'ipv6'", &["ipv4", "ipv6"])
    {
        for (family, most) in [("ipv4", &mut bounds.ipv4), ("ipv6", &mut bounds.ipv6)] {
            let fraction = fractions.get(family);
            let fraction = fraction.and_then(|node| read_fraction(reader, node, MAX_COVERAGE));
            *most = fraction.unwrap_or(*most);
        }
    }
    if let Some(node) = of_files(reader, fields, MAX_GROWTH) {
        bounds.growth = if reader.scalar(node) == Some("off") {
            None
        } else {
            let factor = reader.whole(node, MAX_GROWTH, GROWTH);
            factor.and_then(|factor| u32::try_from(factor).ok())
        };
    }
    let loss = of_files(reader, fields, MAX_LOSS);
    let loss = loss.and_then(|node| read_fraction(reader, node, MAX_LOSS));
    bounds.loss = loss.unwrap_or(bounds.loss);
    bounds
}

fn read_fraction<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    field: &str,
) -> Option<Fraction> {
    let text = reader.text(node, "a percentage such as '5%'")?;
    match text.parse() {
        Ok(fraction) => Some(fraction),
        Err(error) => {
            reader.error(node.at, format!("invalid {field} '{text}', {error}"));
            None
        }
    }
}

/// Returns a field about the files. Reports a missing `file`.
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
