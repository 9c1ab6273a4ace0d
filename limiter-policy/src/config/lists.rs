//! The section `lists`: named sets of addresses, from the configuration and from feed files.

use std::ops::RangeInclusive;

use ipnet::IpNet;
use jiff::Timestamp;

use super::{
    diagnostics::{Position, Problems},
    duration,
    fields::{self, Field, Given},
    list_names::ListNames,
    nearest,
    node::Node,
    prefix,
    reader::{Fields, FirstPositions, Reader},
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
            let source = ListSource::of_cidr(list.name.clone(), list.cidr.clone());
            self.sources.push(source);
        }
    }

    /// Reads a list's files. The configuration names them at these positions.
    fn read_feeds(
        &mut self,
        reader: &mut Reader<'_, '_>,
        source: &ListSource,
        positions: Vec<Position>,
    ) {
        let surroundings = reader.surroundings();
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

/// A list that is being read, and the positions of its files' names.
pub(super) struct Item {
    source: ListSource,
    positions: Vec<Position>,
}

type ListField = Field<Item>;

pub(super) const FIELDS: &[ListField] = &[
    ListField::new(
        NAME,
        "a letter and up to 63 letters, digits, `-`, `_` or `.` (required)",
        |list, given| list.source.name = read_name(given).unwrap_or_default(),
    ),
    ListField::new(
        CIDR,
        "addresses or prefixes (this or `file` is required)",
        |list, given| list.source.cidr = read_cidr(given),
    ),
    ListField::new(FILE, "names of feed files", read_files),
    ListField::new(
        FORMAT,
        "`auto` (by each file's first lines), `plain`, `json-lines`, `crowdsec` or `ipset`",
        |list, given| {
            let known = Format::ALL.map(|format| (format.name(), format));
            given.choice(&mut list.source.format, known);
        },
    ),
    ListField::new(
        MAX_AGE,
        "how long without a change until a file is stale (for ever)",
        |list, given| list.source.max_age_ns = read_max_age(given),
    ),
    ListField::new(
        WHEN_STALE,
        "`report`: a stale file stays on the list; `drop`: it does not",
        |list, given| {
            if given.fields.is_missing(MAX_AGE) {
                given.error(format!("'{WHEN_STALE}' has no effect without '{MAX_AGE}'"));
            }
            let known = WhenStale::ALL.map(|one| (one.name(), one));
            given.choice(&mut list.source.when_stale, known);
        },
    ),
    ListField::new(
        MAX_COVERAGE,
        "how much of each family the files together may cover, `0%` to `100%` (`{ipv4: 20%, ipv6: 0.1%}`)",
        |list, given| {
            let expected = "a map of 'ipv4' and 'ipv6'";
            given.map(expected, COVERAGE_FIELDS, &mut list.source.bounds);
        },
    ),
    ListField::new(
        MAX_GROWTH,
        "the factor by which a file may grow within a day, 2 to 1000, or `off` (2)",
        |list, given| list.source.bounds.growth = read_growth(given),
    ),
    ListField::new(
        MAX_LOSS,
        "the part of its prefixes that a file may lose at once, `0%` to `100%` (`30%`)",
        |list, given| read_fraction(&mut list.source.bounds.loss, given, MAX_LOSS),
    )
    .then(|_, reader, fields| check_files(reader, fields)),
];

const COVERAGE_FIELDS: &[Field<Bounds>] = &[
    Field::unlisted("ipv4", |bounds, given| {
        read_fraction(&mut bounds.ipv4, given, MAX_COVERAGE);
    }),
    Field::unlisted("ipv6", |bounds, given| {
        read_fraction(&mut bounds.ipv6, given, MAX_COVERAGE);
    }),
];

/// Reads a list of lists, and the files they name.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Lists> {
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
        let mut list = Item {
            source: ListSource::of_cidr(String::new(), Vec::new()),
            positions: Vec::new(),
        };
        let expected = "a list with 'name' and 'cidr' or 'file'";
        let Some(fields) = fields::read(reader, item, expected, FIELDS, &mut list) else {
            continue;
        };
        if let Some(node) = fields.get(NAME)
            && let Some(name) = reader.scalar(node)
        {
            seen.is_first(reader, name, node.at, || format!("list '{name}'"));
            lists.names.push(name.to_owned());
        }
        if fields.is_missing(NAME) {
            reader.error(item.at, format!("missing field '{NAME}'"));
        }
        if fields.is_missing(CIDR) && fields.is_missing(FILE) {
            let message = format!("missing field '{CIDR}' or '{FILE}'");
            reader.error(item.at, message);
        }
        lists.read_feeds(reader, &list.source, list.positions);
        lists.sources.push(list.source);
    }
    Some(lists)
}

fn read_name(given: &mut Given<'_, '_, '_>) -> Option<String> {
    let name = given.text("a list's name")?;
    if !nearest::is_name(name) {
        given.error(format!(
            "invalid name '{name}', {}",
            nearest::expected_name()
        ));
    }
    Some(name.to_owned())
}

fn read_cidr(given: &mut Given<'_, '_, '_>) -> Vec<IpNet> {
    let reader = &mut *given.reader;
    let items = reader.one_or_more(given.node, "addresses or prefixes");
    items
        .iter()
        .filter_map(|item| prefix::read(reader, item, CIDR))
        .collect()
}

fn read_files(list: &mut Item, given: &mut Given<'_, '_, '_>) {
    let mut seen = FirstPositions::default();
    let reader = &mut *given.reader;
    for item in reader.one_or_more(given.node, "files") {
        let Some(name) = reader.text(item, "a file's name") else {
            continue;
        };
        if seen.is_first(reader, name, item.at, || format!("file '{name}'"))
            && let Some(path) = reader.named_path(item.at, name)
        {
            list.source.files.push(path);
            list.positions.push(item.at);
        }
    }
}

fn read_max_age(given: &mut Given<'_, '_, '_>) -> Option<u64> {
    let text = given.text("a duration such as '24h'")?;
    match duration::parse(text) {
        Ok(ns) => Some(ns),
        Err(error) => {
            given.error(format!("invalid {MAX_AGE} '{text}', {error}"));
            None
        }
    }
}

fn read_growth(given: &mut Given<'_, '_, '_>) -> Option<u32> {
    if given.reader.scalar(given.node) == Some("off") {
        return None;
    }
    let factor = given.reader.whole(given.node, MAX_GROWTH, GROWTH)?;
    u32::try_from(factor).ok()
}

fn read_fraction(fraction: &mut Fraction, given: &mut Given<'_, '_, '_>, field: &str) {
    let Some(text) = given.text("a percentage such as '5%'") else {
        return;
    };
    match text.parse() {
        Ok(parsed) => *fraction = parsed,
        Err(error) => given.error(format!("invalid {field} '{text}', {error}")),
    }
}

/// Reports fields about files in a list without any.
fn check_files(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    if !fields.is_missing(FILE) {
        return;
    }
    for field in [
        FORMAT,
        MAX_AGE,
        WHEN_STALE,
        MAX_COVERAGE,
        MAX_GROWTH,
        MAX_LOSS,
    ] {
        if let Some(node) = fields.get(field) {
            reader.error(node.at, format!("'{field}' has no effect without '{FILE}'"));
        }
    }
}
