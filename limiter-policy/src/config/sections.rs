//! The sections of a configuration file, and the files that hold some of them.

use std::path::{Path, PathBuf};

use limiter_common::reason::Action;
use limiter_fleet::Keys;

use super::{
    Config, answers, assemble, bans, buckets,
    diagnostics::Problems,
    dns_cookies, fleet,
    ip_rep::{self, IpRep},
    joined::{Sections, Texts},
    limits::{self, Limits},
    list_names, lists, names_section,
    node::{Node, Value},
    offenders, overrides,
    owned_names::{self, SERVER_NAMES, ZONES},
    page, public_suffixes,
    reader::{Fields, Reader},
    selector, settings, standing, subscribers,
    surroundings::{Surroundings, named_path},
};
use crate::{
    file::{self, FileError},
    fleet::Fleet,
    policy::{CountedConnections, DnsName, OwnConnections},
};

const LIMITS: &str = "limits";
const OVERRIDES: &str = "overrides";
const SUBSCRIBERS: &str = "subscribers";
const LISTS: &str = "lists";
const EXCLUDE: &str = "exclude";
const BLOCK: &str = "block";
const NEVER_BAN: &str = "never-ban";
const NAT64: &str = "nat64";
const IP_REP: &str = "ip-rep";
const STANDING: &str = "standing";
const ANSWERS: &str = "answers";
const DNS_COOKIES: &str = "dns-cookies";
const PUBLIC_SUFFIXES: &str = "public-suffixes";
const INTERFACES: &str = "interfaces";
const MODE: &str = "mode";
const MALFORMED: &str = "malformed";
const OWN_CONNECTIONS: &str = "own-connections";
const CONNECTIONS: &str = "connections";
const NAMES: &str = "names";
const SELECTOR: &str = "selector";
const BUCKETS: &str = "buckets";
const OFFENDERS: &str = "offenders";
const BANS: &str = "bans";
const STATE: &str = "state";
const METRICS: &str = "metrics";
const PAGE: &str = "page";
const CONTROL: &str = "control";
const FLEET: &str = "fleet";

const SECTIONS: [&str; 30] = [
    LIMITS,
    SELECTOR,
    OVERRIDES,
    SUBSCRIBERS,
    LISTS,
    EXCLUDE,
    BLOCK,
    NEVER_BAN,
    NAT64,
    IP_REP,
    STANDING,
    ANSWERS,
    DNS_COOKIES,
    ZONES.section,
    PUBLIC_SUFFIXES,
    SERVER_NAMES.section,
    INTERFACES,
    MODE,
    MALFORMED,
    OWN_CONNECTIONS,
    CONNECTIONS,
    NAMES,
    BUCKETS,
    OFFENDERS,
    BANS,
    STATE,
    METRICS,
    PAGE,
    CONTROL,
    FLEET,
];

/// The sections that several files of a configuration may have: maps and lists of named items.
const JOINED: Sections = Sections {
    joinable: &[
        LIMITS,
        OVERRIDES,
        SUBSCRIBERS,
        LISTS,
        EXCLUDE,
        BLOCK,
        NEVER_BAN,
        IP_REP,
    ],
    list_names: &[EXCLUDE, BLOCK, NEVER_BAN],
};

/// The sections that a node accepts from another: none about a host, and none with a host's secrets.
pub(super) const OF_ALL: [&str; 19] = [
    LIMITS,
    SELECTOR,
    OVERRIDES,
    SUBSCRIBERS,
    LISTS,
    EXCLUDE,
    BLOCK,
    NEVER_BAN,
    NAT64,
    IP_REP,
    STANDING,
    ANSWERS,
    ZONES.section,
    PUBLIC_SUFFIXES,
    SERVER_NAMES.section,
    MALFORMED,
    OWN_CONNECTIONS,
    CONNECTIONS,
    NAMES,
];

/// Reads a configuration's texts. If errors are reported, the result is `None` or invalid.
pub(super) fn read(
    texts: &Texts,
    surroundings: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Config> {
    let root = texts.parse(&JOINED, problems)?;
    let mut reader = Reader::of_texts(texts, problems);
    let expected = format!("a map with the sections {}", SECTIONS.join(", "));
    let fields = reader.fields(&root, &expected, &SECTIONS)?;
    let directory = surroundings.directory;
    let mut limits = match fields.get(LIMITS) {
        Some(node) => section(&mut reader, node, directory, limits::read),
        None => fields.is_missing(LIMITS).then(Limits::default),
    }
    .unwrap_or_else(Limits::unreadable);
    read_selectors(&mut reader, &fields, directory, &mut limits);
    let subscribers = fields
        .get(SUBSCRIBERS)
        .and_then(|node| section(&mut reader, node, directory, subscribers::read));
    let problems_before = reader.problems().count();
    let overrides = fields.get(OVERRIDES).and_then(|node| {
        section(&mut reader, node, directory, |reader, node| {
            overrides::read(reader, node, &mut limits, subscribers.as_ref())
        })
    });
    let mut lists = lists(&mut reader, &fields, surroundings);
    let ip_rep = sieves(&mut reader, &fields, directory);
    let (dns_cookies, secrets) = fields
        .get(DNS_COOKIES)
        .and_then(|node| dns_cookies::read(&mut reader, node, directory))
        .unzip();
    let [exclude, block, never_ban] = [EXCLUDE, BLOCK, NEVER_BAN]
        .map(|field| list_names::read_field(&mut reader, &fields, field, None));
    let standing = (fields.get(STANDING)).map(|node| standing::read(&mut reader, node));
    let of_limits = limits.iter();
    let named = [&exclude, &block, &never_ban].into_iter();
    named
        .chain(standing.iter().map(|standing| &standing.proven))
        .chain(of_limits.flat_map(|(_, limit)| [&limit.exclude_lists, &limit.block_lists]))
        .for_each(|named| lists.add_written(named));
    let (until_known, cached_names) = setting(&mut reader, &fields, NAMES, names_section::read);
    let (fleet, keys) = fleet(&mut reader, &fields, directory).unzip();
    let parts = assemble::Parts {
        lists: &lists,
        exclude,
        block,
        never_ban,
        nat64: setting(&mut reader, &fields, NAT64, settings::read_nat64),
        standing,
        answers: (fields.get(ANSWERS)).map(|node| answers::read(&mut reader, node)),
        dns_cookies,
        zones: names(&mut reader, &fields, directory, ZONES),
        server_names: names(&mut reader, &fields, directory, SERVER_NAMES),
        public_suffixes: public_suffixes(&mut reader, &fields, directory),
        limits,
        overrides: overrides.unwrap_or_default(),
        // Invalid overrides, and sections with a misspelt name, are missing from `overrides`.
        overrides_known: reader.problems().count() == problems_before
            && (fields.get(OVERRIDES).is_some() || fields.is_missing(OVERRIDES)),
        subscribers: subscribers.unwrap_or_default(),
        subscribers_missing: fields.is_missing(SUBSCRIBERS),
        ip_rep: ip_rep.unwrap_or_else(IpRep::unreadable),
        bans: fields.get(BANS).is_some(),
        malformed: malformed(&mut reader, &fields),
        own_connections: own_connections(&mut reader, &fields),
        connections: connections(&mut reader, &fields),
        until_known,
        cached_names,
        fleet_nodes: fleet.as_ref().map(|fleet| fleet.nodes),
    };
    let interfaces = setting(&mut reader, &fields, INTERFACES, settings::read_interfaces);
    let mode = setting(&mut reader, &fields, MODE, settings::read_mode);
    let buckets = setting(&mut reader, &fields, BUCKETS, buckets::read);
    let offenders = setting(&mut reader, &fields, OFFENDERS, offenders::read);
    let bans = setting(&mut reader, &fields, BANS, bans::read);
    let state = state(&mut reader, &fields, directory);
    let metrics = setting(&mut reader, &fields, METRICS, settings::read_metrics);
    let page = setting(&mut reader, &fields, PAGE, page::read);
    let control = setting(&mut reader, &fields, CONTROL, settings::read_control);
    if fleet.is_some() || fields.is_missing(FLEET) {
        let limits = (&parts.limits, &parts.overrides.overrides);
        fleet::check_limits(limits, fleet.as_ref(), buckets, problems);
    }
    assemble::check_offenders_recorded(&parts.limits, offenders, problems);
    assemble::check_scope(&parts.limits, buckets, problems);
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
        page,
        control,
        names_key: fleet::names_key(fleet.as_ref().zip(keys), &policy),
        fleet,
        lists: lists.sources,
        feeds: lists.feeds,
        secrets,
        policy,
    })
}

fn lists<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    surroundings: &Surroundings<'_>,
) -> lists::Lists {
    let lists = match fields.get(LISTS) {
        Some(node) => section(reader, node, surroundings.directory, |reader, node| {
            lists::read(reader, node, surroundings)
        }),
        None => fields.is_missing(LISTS).then(lists::Lists::default),
    };
    lists.unwrap_or_else(lists::Lists::unreadable)
}

/// Reads the path of the file for debts; `None`: debts are not kept.
fn state<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    directory: Option<&Path>,
) -> Option<PathBuf> {
    let node = fields.get(STATE)?;
    settings::read_state(reader, node, directory)
}

/// Reads the fleet of the host, with its keys; `None`: the host is alone, or an error was reported.
fn fleet<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    directory: Option<&Path>,
) -> Option<(Fleet, Keys)> {
    fleet::read(reader, fields.get(FLEET)?, directory)
}

/// Reads a section of names; `None`: absent.
fn names<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    directory: Option<&Path>,
    kind: owned_names::Kind,
) -> Option<Vec<DnsName>> {
    match fields.get(kind.section) {
        Some(node) => Some(owned_names::read(reader, node, directory, kind)),
        None => (!fields.is_missing(kind.section)).then(Vec::new),
    }
}

fn public_suffixes<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    directory: Option<&Path>,
) -> public_suffixes::Section {
    match fields.get(PUBLIC_SUFFIXES) {
        Some(node) => public_suffixes::read(reader, node, directory),
        None if fields.is_missing(PUBLIC_SUFFIXES) => public_suffixes::Section::Missing,
        None => public_suffixes::Section::Invalid,
    }
}

/// Reads the section `ip-rep`; `None`: invalid.
fn sieves<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    directory: Option<&Path>,
) -> Option<IpRep> {
    match fields.get(IP_REP) {
        Some(node) => section(reader, node, directory, ip_rep::read),
        None => fields.is_missing(IP_REP).then(IpRep::default),
    }
}

/// Reads the limits of the section `selector`, if present.
fn read_selectors<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    directory: Option<&Path>,
    limits: &mut Limits,
) {
    let Some(node) = fields.get(SELECTOR) else {
        return;
    };
    let read = section(reader, node, directory, |reader, node| {
        selector::read(reader, node, limits)
    });
    if read.is_none() {
        limits.lack_some();
    }
}

fn malformed<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Action {
    let node = fields.get(MALFORMED);
    node.map_or(Action::Drop, |node| settings::read_malformed(reader, node))
}

/// Reads the treatment of connections that the host began.
fn own_connections<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> OwnConnections {
    let read = settings::read_own_connections;
    setting(reader, fields, OWN_CONNECTIONS, read)
}

/// Reads the scope of limits on connections.
fn connections<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> CountedConnections {
    setting(reader, fields, CONNECTIONS, settings::read_connections)
}

/// Reads an unstructured section, or returns its default.
fn setting<'n, T: Default>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    name: &str,
    read: impl FnOnce(&mut Reader<'n, '_>, &'n Node<'n>) -> T,
) -> T {
    let node = fields.get(name);
    node.map(|node| read(reader, node)).unwrap_or_default()
}

/// Reads a section inline, or from a file that it names.
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
    reader.problems().record_file(path);
    // Errors about the file as a whole are reported at its name's position.
    let mut unreadable = |error: FileError| {
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
        }) => unreadable(FileError::Empty),
        Ok(root) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            read(&mut Reader::new(&text, file, problems), &root)
        }
        Err(error) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            problems.report(file, error.at, error.message);
            None
        }
    }
}
