//! The sections about names: `zones` and `server-names`, the names that limits with these ids tell apart;
//! `public-suffixes`, below which domains are registered; and `names`, the treatment of a connection's data until
//! its name is known, and the table of cached DNS names. Some are files with one name on each line.

use std::{
    fmt::Display,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use limiter_common::cached_names::{MOST_LINES, WAYS};

use super::{
    diagnostics::Problems,
    dns_match,
    fields::{Field, Given},
    limits::Limits,
    node::Value,
    reader::FirstPositions,
};
use crate::{
    file::read_at_most,
    policy::{
        CachedNames, DnsName, InvalidDnsName, InvalidSuffixRule, Mode, SuffixRule, UntilKnown,
        rule_in_line,
    },
};

const FILE: &str = "file";

const MOST_NAMES: usize = 100_000;

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
pub(super) fn read_names(given: &mut Given<'_, '_, '_>, kind: Kind) -> Vec<DnsName> {
    let mut names = match &given.node.value {
        Value::Mapping(_) => read_file(given, kind).unwrap_or_default(),
        _ => read_written(given, kind),
    };
    if names.len() > MOST_NAMES {
        let several = kind.several;
        given.error(format!("too many {several}: at most {MOST_NAMES}"));
    }
    names.sort_unstable();
    names
}

fn read_written(given: &mut Given<'_, '_, '_>, kind: Kind) -> Vec<DnsName> {
    let mut seen = FirstPositions::default();
    let reader = &mut *given.reader;
    let items = reader.one_or_more(given.node, kind.several);
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
fn read_file(
    given: &mut Given<'_, '_, '_>,
    Kind { one, several, .. }: Kind,
) -> Option<Vec<DnsName>> {
    let expected = format!("a list of {several}, or a map with 'file'");
    let lines: Lines<DnsName, InvalidDnsName> = Lines {
        item: one,
        find: |line| {
            let name = line.split('#').next().unwrap_or_default().trim();
            (!name.is_empty()).then_some(name)
        },
        parse: str::parse,
    };
    lines.read(
        given,
        &expected,
        &format!("the file with a {one} on each line"),
    )
}

/// The list of Debian's package `publicsuffix`.
const DEFAULT_SUFFIXES: &str = "/usr/share/publicsuffix/public_suffix_list.dat";

const SUFFIX_LINES: Lines<SuffixRule, InvalidSuffixRule> = Lines {
    item: "public suffix",
    find: rule_in_line,
    parse: str::parse,
};

/// The file that a section names.
#[derive(Default)]
pub(super) enum Suffixes {
    /// The section is absent.
    #[default]
    Missing,
    /// An error was reported.
    Invalid,
    /// The rules in the named file.
    Read(Vec<SuffixRule>),
}

/// Reads the section: a map with the file.
pub(super) fn read_suffixes(given: &mut Given<'_, '_, '_>) -> Suffixes {
    let rules = SUFFIX_LINES.read(given, "a map with 'file'", "the public suffix list");
    rules.map_or(Suffixes::Invalid, Suffixes::Read)
}

/// Returns the rules that the limits need, from the default file unless the section names another; none if no
/// limit needs rules.
pub(super) fn suffix_rules(
    section: Suffixes,
    limits: &Limits,
    problems: &mut Problems,
) -> Vec<SuffixRule> {
    let mut limits = limits.iter().map(|(_, limit)| limit);
    let user = limits.find(|limit| limit.mode != Mode::Off && limit.is_of_domains());
    match (section, user) {
        (Suffixes::Read(rules), _) => rules,
        (Suffixes::Invalid, _) | (Suffixes::Missing, None) => Vec::new(),
        (Suffixes::Missing, Some(limit)) => {
            let path = PathBuf::from(DEFAULT_SUFFIXES);
            problems.record_file(&path);
            SUFFIX_LINES.items(&path).unwrap_or_else(|why| {
                let message = format!(
                    "{} needs the public suffix list: the file '{DEFAULT_SUFFIXES}' {why}: install the \
                     package publicsuffix, or name a file in 'public-suffixes'",
                    limit.name
                );
                problems.report_at(limit.position, message);
                Vec::new()
            })
        }
    }
}

/// Eight bytes each: at most 1 GiB.
const CACHE_CAPACITIES: RangeInclusive<u64> = 1024..=MOST_LINES as u64 * WAYS as u64;

const MINUTE_NS: u64 = 60_000_000_000;

/// A name's time is refreshed only every few seconds, and has 24 bits.
const CACHED_FOR_NS: RangeInclusive<u64> = MINUTE_NS..=30 * 24 * 60 * MINUTE_NS;

/// The fields of the section, in one line of the manual.
const NAMES_FIELDS: &[Field<(UntilKnown, CachedNames)>] = &[
    Field::unlisted("tls", |(until_known, _), given| {
        given.map(EXPECTED_NAMES, TLS_FIELDS, until_known);
    }),
    Field::unlisted("known", |(_, names), given| {
        let expected = "a map such as {capacity: 1048576, for: 24h}";
        given.map(expected, CACHE_FIELDS, names);
    }),
];

const TLS_FIELDS: &[Field<UntilKnown>] = &[Field::unlisted("until-known", |value, given| {
    given.choice(value, UntilKnown::ALL.map(|value| (value.name(), value)));
})];

const CACHE_FIELDS: &[Field<CachedNames>] = &[
    Field::unlisted("capacity", |names, given| {
        given.whole(&mut names.capacity, CACHE_CAPACITIES);
    }),
    Field::unlisted("for", |names, given| {
        given.duration(&mut names.cached_for_ns, &CACHED_FOR_NS);
    }),
];

const EXPECTED_NAMES: &str = "a map such as {tls: {until-known: hold}}";

pub(super) fn read_settings(given: &mut Given<'_, '_, '_>) -> (UntilKnown, CachedNames) {
    let mut read = Default::default();
    given.map(EXPECTED_NAMES, NAMES_FIELDS, &mut read);
    read
}

/// The largest file, in MiB.
const MAX_MIB: u64 = 32;

/// The format of the lines.
struct Lines<T, E> {
    /// The item's name in messages.
    item: &'static str,
    /// Returns the item in a line; `None`: the line is blank or a comment.
    find: fn(&str) -> Option<&str>,
    parse: fn(&str) -> Result<T, E>,
}

impl<T: Ord, E: Display> Lines<T, E> {
    /// Reads a map with a file, and the file's items, sorted; duplicates are allowed. `None`: an error was reported.
    fn read(&self, given: &mut Given<'_, '_, '_>, expected: &str, needed: &str) -> Option<Vec<T>> {
        let reader = &mut *given.reader;
        let fields = reader.fields(given.node, expected, &[FILE])?;
        let Some(file) = fields.get(FILE) else {
            if fields.is_missing(FILE) {
                given.error(format!("needs '{FILE}', {needed}"));
            }
            return None;
        };
        let name = reader.text(file, "a file's name")?;
        let path = reader.named_path(file.at, name)?;
        reader.problems().record_file(&path);
        match self.items(&path) {
            Ok(items) => Some(items),
            Err(why) => {
                reader.error(file.at, format!("the file '{}' {why}", path.display()));
                None
            }
        }
    }

    /// Returns a file's items, sorted, or an error message.
    fn items(&self, path: &Path) -> Result<Vec<T>, String> {
        let content = read_at_most(path, MAX_MIB).map_err(|error| error.to_string())?;
        let Ok(text) = str::from_utf8(&content.bytes) else {
            return Err("is not UTF-8 text".to_owned());
        };
        let mut items = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(item) = (self.find)(line) else {
                continue;
            };
            match (self.parse)(item) {
                Ok(item) => items.push(item),
                Err(error) => {
                    let of_item = self.item;
                    return Err(format!("has no {of_item} in line {number}: it {error}"));
                }
            }
        }
        if items.is_empty() {
            return Err(format!("has no {}", self.item));
        }
        items.sort_unstable();
        items.dedup();
        Ok(items)
    }
}
