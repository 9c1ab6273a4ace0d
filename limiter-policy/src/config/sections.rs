//! The sections of a configuration file, and the files that hold some of them.

use std::path::Path;

use limiter_common::reason::Action;

use super::{
    Config, answers, assemble, bans, buckets,
    diagnostics::{FileNumber, Problems},
    ip_rep::{self, IpRep},
    limits::{self, Limits},
    list_names, lists,
    node::{Node, Value},
    offenders, overrides,
    reader::Reader,
    settings, standing, subscribers,
    surroundings::{Surroundings, named_path},
};
use crate::file::{self, Unreadable};

const LIMITS: &str = "limits";
const OVERRIDES: &str = "overrides";
const SUBSCRIBERS: &str = "subscribers";
const LISTS: &str = "lists";
const EXCLUDE: &str = "exclude";
const BLOCK: &str = "block";
const NEVER_BAN: &str = "never-ban";
const IP_REP: &str = "ip-rep";
const STANDING: &str = "standing";
const ANSWERS: &str = "answers";
const INTERFACES: &str = "interfaces";
const MODE: &str = "mode";
const MALFORMED: &str = "malformed";
const BUCKETS: &str = "buckets";
const OFFENDERS: &str = "offenders";
const BANS: &str = "bans";
const STATE: &str = "state";
const METRICS: &str = "metrics";

const SECTIONS: [&str; 18] = [
    LIMITS,
    OVERRIDES,
    SUBSCRIBERS,
    LISTS,
    EXCLUDE,
    BLOCK,
    NEVER_BAN,
    IP_REP,
    STANDING,
    ANSWERS,
    INTERFACES,
    MODE,
    MALFORMED,
    BUCKETS,
    OFFENDERS,
    BANS,
    STATE,
    METRICS,
];

/// Reads a configuration file's text. If any errors are noted, the result is `None` or not valid.
pub(super) fn read(
    text: &str,
    surroundings: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Config> {
    let file = surroundings.file;
    let root = root(text, file, problems)?;
    let mut reader = Reader::new(text, file, problems);
    let expected = format!("a map with the sections {}", SECTIONS.join(", "));
    let fields = reader.fields(&root, &expected, &SECTIONS)?;
    let directory = surroundings.directory;

    let mut limits = match fields.get(LIMITS) {
        Some(node) => section(&mut reader, node, directory, limits::read),
        None => fields.is_missing(LIMITS).then(Limits::default),
    }
    .unwrap_or_else(Limits::unreadable);
    let subscribers = fields
        .get(SUBSCRIBERS)
        .and_then(|node| section(&mut reader, node, directory, subscribers::read));
    let problems_before = reader.problems().count();
    let overrides = fields.get(OVERRIDES).and_then(|node| {
        section(&mut reader, node, directory, |reader, node| {
            overrides::read(reader, node, &mut limits, subscribers.as_ref())
        })
    });
    let lists = match fields.get(LISTS) {
        Some(node) => section(&mut reader, node, directory, |reader, node| {
            lists::read(reader, node, surroundings)
        }),
        None => fields.is_missing(LISTS).then(lists::Lists::default),
    }
    .unwrap_or_else(lists::Lists::unreadable);
    let ip_rep = match fields.get(IP_REP) {
        Some(node) => section(&mut reader, node, directory, ip_rep::read),
        None => fields.is_missing(IP_REP).then(IpRep::default),
    };
    let parts = assemble::Parts {
        lists: &lists,
        exclude: list_names::read_field(&mut reader, &fields, EXCLUDE),
        block: list_names::read_field(&mut reader, &fields, BLOCK),
        never_ban: list_names::read_field(&mut reader, &fields, NEVER_BAN),
        standing: (fields.get(STANDING)).map(|node| standing::read(&mut reader, node)),
        answers: (fields.get(ANSWERS)).map(|node| answers::read(&mut reader, node)),
        limits,
        overrides: overrides.unwrap_or_default(),
        // An override with an error, or in a section with a misspelt name, is missing from those.
        overrides_known: reader.problems().count() == problems_before
            && (fields.get(OVERRIDES).is_some() || fields.is_missing(OVERRIDES)),
        subscribers: subscribers.unwrap_or_default(),
        subscribers_missing: fields.is_missing(SUBSCRIBERS),
        ip_rep: ip_rep.unwrap_or_else(IpRep::unreadable),
        bans: fields.get(BANS).is_some(),
        malformed: fields.get(MALFORMED).map_or(Action::Drop, |node| {
            settings::read_malformed(&mut reader, node)
        }),
    };
    let interfaces = fields
        .get(INTERFACES)
        .map(|node| settings::read_interfaces(&mut reader, node))
        .unwrap_or_default();
    let mode = fields
        .get(MODE)
        .map(|node| settings::read_mode(&mut reader, node))
        .unwrap_or_default();
    let buckets = fields
        .get(BUCKETS)
        .map(|node| buckets::read(&mut reader, node))
        .unwrap_or_default();
    let offenders = fields
        .get(OFFENDERS)
        .map(|node| offenders::read(&mut reader, node))
        .unwrap_or_default();
    let bans = fields
        .get(BANS)
        .map(|node| bans::read(&mut reader, node))
        .unwrap_or_default();
    let state = fields
        .get(STATE)
        .and_then(|node| settings::read_state(&mut reader, node, directory));
    let metrics = fields
        .get(METRICS)
        .map(|node| settings::read_metrics(&mut reader, node))
        .unwrap_or_default();
    assemble::check_offenders_recorded(&parts.limits, offenders, problems);
    let policy = assemble::policy(parts, surroundings, problems)?;
    Some(Config {
        files: problems.files_read().to_vec(),
        interfaces,
        mode,
        buckets,
        offenders,
        bans,
        state,
        metrics,
        lists: lists.sources,
        feeds: lists.feeds,
        policy,
    })
}

/// Parses the text into a tree; `None`, which is noted: it is not YAML, or empty.
fn root<'t>(text: &'t str, file: FileNumber, problems: &mut Problems) -> Option<Node<'t>> {
    match Node::parse(text) {
        Ok(Node {
            value: Value::Null, ..
        }) => {
            problems.note(file, None, Unreadable::Empty.to_string());
            None
        }
        Ok(root) => Some(root),
        Err(error) => {
            problems.note(file, error.at, error.message);
            None
        }
    }
}

/// Reads a section, from the configuration file or from a file that the section names.
fn section<'n, T>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
    read: impl for<'a, 'b> FnOnce(&mut Reader<'a, 'b>, &'a Node<'a>) -> Option<T>,
) -> Option<T> {
    match &node.value {
        Value::Text(name) if !name.is_empty() => {
            let path = named_path(reader, node.at, name, directory)?;
            named_file(reader, node, &path, read)
        }
        _ => read(reader, node),
    }
}

fn named_file<'n, T>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    path: &Path,
    read: impl for<'a, 'b> FnOnce(&mut Reader<'a, 'b>, &'a Node<'a>) -> Option<T>,
) -> Option<T> {
    reader.problems().note_read(path);
    // Errors of the file as a whole are noted where it is named.
    let mut unreadable = |error: Unreadable| {
        reader.error(node.at, format!("the file '{}' {error}", path.display()));
        None
    };
    let text = match file::read(path) {
        Ok(text) => text,
        Err(error) => return unreadable(error),
    };
    match Node::parse(&text) {
        Ok(Node {
            value: Value::Null, ..
        }) => unreadable(Unreadable::Empty),
        Ok(root) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            read(&mut Reader::new(&text, file, problems), &root)
        }
        Err(error) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            problems.note(file, error.at, error.message);
            None
        }
    }
}
