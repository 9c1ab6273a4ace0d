//! The sections of a configuration file, one entry for each, and the files that hold some of them.

use limiter_common::reason::Action;

use super::{
    answers, assemble,
    diagnostics::Problems,
    fields::{self, Field, Given},
    fleet,
    ip_rep::{self, IpRep},
    joined::{Joinable, Texts},
    limits::{self, Limits},
    list_names::{self, ListNames},
    listening, lists,
    name_sections::{self, SERVER_NAMES, ZONES},
    overrides,
    parts::{Config, Parts},
    reader::{Fields, Reader, Surroundings},
    room, selector,
    settings::{self, AttachMode},
    standing, subscribers,
};
use crate::policy::{CountedConnections, OwnConnections};

const LIMITS: &str = "limits";
const OVERRIDES: &str = "overrides";
const SUBSCRIBERS: &str = "subscribers";
const LISTS: &str = "lists";
const IP_REP: &str = "ip-rep";
const PUBLIC_SUFFIXES: &str = "public-suffixes";
const FLEET: &str = "fleet";

/// A section, and the files that may have it.
pub(super) struct Section {
    field: Field<Parts>,
    /// Whether a node accepts it from another: it is about no single host, and has no host's secrets.
    is_of_all_nodes: bool,
    /// Whether several files of a configuration may have it: it is a map or a list of named items.
    joinable: Joinable,
}

impl AsRef<Field<Parts>> for Section {
    fn as_ref(&self) -> &Field<Parts> {
        &self.field
    }
}

impl Section {
    const fn joined(self) -> Self {
        Self {
            joinable: Joinable::Items,
            ..self
        }
    }

    /// Several files may have it, and write a single item in place of a list.
    const fn joined_with_items(self) -> Self {
        Self {
            joinable: Joinable::ItemOrItems,
            ..self
        }
    }
}

/// A section about a host.
const fn host(field: Field<Parts>) -> Section {
    Section {
        field,
        is_of_all_nodes: false,
        joinable: Joinable::No,
    }
}

/// A section that all nodes of a fleet may share.
const fn all(field: Field<Parts>) -> Section {
    Section {
        is_of_all_nodes: true,
        ..host(field)
    }
}

type Part = Field<Parts>;

pub(super) const SECTIONS: &[Section] = &[
    all(Part::new(
        LIMITS,
        "map of names to limits (only keys with an override are limited)",
        |parts, given| {
            let read = given.inline_or_file(limits::read);
            parts.limits = read.unwrap_or_else(Limits::unreadable);
        },
    )
    .if_misspelt(|parts| parts.limits = Limits::unreadable()))
    .joined(),
    all(Part::new(
        "selector",
        "list of Traffic Server's selectors",
        |parts, given| {
            let limits = &mut parts.limits;
            if given
                .inline_or_file(|reader, node| selector::read(reader, node, limits))
                .is_none()
            {
                parts.limits.lack_some();
            }
        },
    )),
    all(Part::part(OVERRIDES, "map or list")).joined(),
    all(
        Part::new(SUBSCRIBERS, "map of numbers to prefixes", |parts, given| {
            parts.subscribers = given.inline_or_file(subscribers::read);
        })
        .then(read_overrides),
    )
    .joined(),
    all(
        Part::new(LISTS, "list of lists of addresses", |parts, given| {
            let read = given.inline_or_file(lists::read);
            parts.lists = read.unwrap_or_else(lists::Lists::unreadable);
        })
        .if_misspelt(|parts| parts.lists = lists::Lists::unreadable()),
    )
    .joined(),
    all(Part::new(
        "exclude",
        "names of lists, addresses or prefixes with packets that pass",
        |parts, given| parts.exclude = list_names::read(given, None),
    ))
    .joined_with_items(),
    all(Part::new(
        "block",
        "likewise, with packets that are dropped",
        |parts, given| parts.block = list_names::read(given, None),
    ))
    .joined_with_items(),
    all(Part::new(
        "never-ban",
        "likewise, with sources that are not banned",
        |parts, given| parts.never_ban = list_names::read(given, None),
    ))
    .joined_with_items(),
    all(Part::new(
        "nat64",
        "your translators' prefixes",
        |parts, given| parts.nat64 = settings::read_nat64(given),
    )),
    all(Part::new(IP_REP, "list of sieves", |parts, given| {
        let read = given.inline_or_file(ip_rep::read);
        parts.ip_rep = read.unwrap_or_else(IpRep::unreadable);
    })
    .if_misspelt(|parts| parts.ip_rep = IpRep::unreadable()))
    .joined(),
    all(Part::new(
        "standing",
        "how sources gain their standing",
        |parts, given| parts.standing = Some(standing::read(given)),
    )),
    all(Part::new("answers", "rates of answers", |parts, given| {
        parts.answers = Some(answers::read_rates(given));
    })),
    host(Part::new(
        "dns-cookies",
        "map: `secret-file`, `port` (cookies prove no source)",
        |parts, given| (parts.dns_cookies, parts.secrets) = standing::read_cookies(given).unzip(),
    )),
    all(Part::new(
        ZONES.section,
        "list of zones, or map: `file`",
        |parts, given| {
            parts.zones = Some(name_sections::read_names(given, ZONES));
        },
    )
    .if_misspelt(|parts| parts.zones = Some(Vec::new()))),
    all(Part::new(
        PUBLIC_SUFFIXES,
        "map: `file` (of Debian's package `publicsuffix`)",
        |parts, given| {
            parts.public_suffixes = name_sections::read_suffixes(given);
        },
    )
    .if_misspelt(|parts| parts.public_suffixes = name_sections::Suffixes::Invalid)),
    all(Part::new(
        SERVER_NAMES.section,
        "list of names, or map: `file`",
        |parts, given| {
            let names = name_sections::read_names(given, SERVER_NAMES);
            parts.server_names = Some(names);
        },
    )
    .if_misspelt(|parts| parts.server_names = Some(Vec::new()))),
    host(Part::new(
        "interfaces",
        "names or patterns of names (the command line must name them)",
        |parts, given| parts.interfaces = settings::read_interfaces(given),
    )),
    host(Part::new(
        "mode",
        "[`auto`, `native` or `generic`](kernels.md#modes)",
        |parts, given| {
            let known = AttachMode::ALL.map(|mode| (mode.name(), mode));
            given.choice(&mut parts.mode, known);
        },
    )),
    all(Part::new(
        "malformed",
        "`drop` or `pass`: [malformed packets](packets.md#how-a-frame-is-read)",
        |parts, given| {
            let known = [Action::Drop, Action::Pass].map(|action| (action.name(), action));
            parts.malformed = given.reader.choice(given.node, "action", known);
        },
    )),
    all(Part::new(
        "own-connections",
        "`exempt` or `limit`",
        |parts, given| {
            let known = OwnConnections::ALL.map(|value| (value.name(), value));
            let read = (given.reader).choice(given.node, "value of own-connections", known);
            parts.own_connections = read.unwrap_or_default();
        },
    )),
    all(Part::new(
        "connections",
        "`own` or `tracked`: with [forwarded connections](connections.md#for-hosts-that-forward)",
        |parts, given| {
            let known = CountedConnections::ALL.map(|value| (value.name(), value));
            let read = (given.reader).choice(given.node, "value of connections", known);
            parts.connections = read.unwrap_or_default();
        },
    )),
    all(Part::new(
        "names",
        "map: `tls` with `until-known`, `pass` or `hold`; [`known`](dns-names.md#new-names) with `capacity` (1048576) \
         and `for` (`24h`)",
        |parts, given| {
            (parts.until_known, parts.cached_names) = name_sections::read_settings(given);
        },
    )),
    host(Part::new("buckets", "room for limits", |parts, given| {
        let expected = "a map with store, capacity, when-full, scope";
        given.map(expected, room::BUCKETS_FIELDS, &mut parts.buckets);
    })),
    host(Part::new(
        "offenders",
        "room for dropped sources",
        |parts, given| {
            given.map(
                "a map with 'capacity'",
                room::OFFENDERS_FIELDS,
                &mut parts.offenders,
            );
        },
    )),
    host(Part::new(
        "bans",
        "room for banned sources",
        |parts, given| {
            parts.has_bans = true;
            given.map("a map with 'capacity'", room::BANS_FIELDS, &mut parts.bans);
        },
    )),
    host(Part::new(
        "state",
        "a file's name (nothing outlives the daemon)",
        |parts, given| parts.state = settings::read_state(given),
    )),
    host(Part::new(
        "metrics",
        "map: `listen`, `hosts`",
        |parts, given| {
            given.map(
                "a map with 'listen'",
                listening::METRICS_FIELDS,
                &mut parts.metrics,
            );
        },
    )),
    host(Part::new(
        "page",
        "`off`, `on` or map: `listen`, `hosts`, `beyond-loopback`",
        |parts, given| listening::read_page(&mut parts.page, given),
    )),
    host(Part::new(
        "control",
        "map: `group` (only root may ask)",
        |parts, given| {
            given.map(
                "a map with 'group'",
                settings::CONTROL_FIELDS,
                &mut parts.control,
            );
        },
    )),
    host(Part::new(
        FLEET,
        "map: `store`, `name`, `key-file` and more",
        |parts, given| (parts.fleet, parts.fleet_keys) = fleet::read(given).unzip(),
    )),
];

/// Returns the sections that a node accepts from another.
pub(super) fn of_all_nodes() -> Vec<&'static str> {
    let sections = SECTIONS.iter();
    let sections = sections.filter(|section| section.is_of_all_nodes);
    sections.map(|section| section.field.name).collect()
}

fn joinable(name: &str) -> Joinable {
    let mut sections = SECTIONS.iter();
    let section = sections.find(|section| section.field.name == name);
    section.map_or(Joinable::No, |section| section.joinable)
}

/// Reads a configuration's texts. If errors are reported, the result is `None` or invalid.
pub(super) fn read(
    texts: &Texts,
    surroundings: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<Config> {
    let root = texts.parse(joinable, problems)?;
    let mut parts = Parts::default();
    let names = fields::names(SECTIONS);
    let expected = format!("a map with the sections {}", names.join(", "));
    let mut reader = Reader::new(texts, surroundings, problems);
    let fields = fields::read(&mut reader, &root, &expected, SECTIONS, &mut parts)?;
    add_written_lists(&mut parts);
    if parts.fleet.is_some() || fields.is_missing(FLEET) {
        let limits = (&parts.limits, &parts.overrides.overrides);
        fleet::check_shared(limits, parts.fleet.as_ref(), parts.buckets, problems);
    }
    assemble::config(parts, surroundings, problems)
}

/// Reads the overrides, of limits and perhaps of subscribers.
fn read_overrides<'n>(parts: &mut Parts, reader: &mut Reader<'n, '_>, fields: &Fields<'n>) {
    parts.subscribers_missing = fields.is_missing(SUBSCRIBERS);
    let problems_before = reader.problems().count();
    if let Some((name, node)) = fields.find(OVERRIDES) {
        let (limits, subscribers) = (&mut parts.limits, parts.subscribers.as_ref());
        let mut given = Given {
            reader,
            name,
            node,
            fields,
        };
        let read =
            given.inline_or_file(|reader, node| overrides::read(reader, node, limits, subscribers));
        parts.overrides = read.unwrap_or_default();
    }
    // Invalid overrides, and sections with a misspelt name, are missing from `overrides`.
    parts.overrides_known =
        reader.problems().count() == problems_before && !fields.is_misspelt(OVERRIDES);
}

/// Adds a list for each field that has addresses in place of a list's name.
fn add_written_lists(parts: &mut Parts) {
    let standing = parts.standing.iter().map(|standing| &standing.proven);
    let of_limits = parts.limits.iter();
    let of_limits = of_limits.flat_map(|(_, limit)| [&limit.exclude_lists, &limit.block_lists]);
    let named: [&ListNames; 3] = [&parts.exclude, &parts.block, &parts.never_ban];
    let named = named.into_iter().chain(standing).chain(of_limits);
    for names in named {
        parts.lists.add_written(names);
    }
}
