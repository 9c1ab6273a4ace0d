//! The section `fleet`: the store, this node's name, and the files with the secrets.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use limiter_common::{limit::Cost, table::HashKey};
use limiter_fleet::{Keys, Name, StoreAddress, is_store_word};

use super::{
    diagnostics::{Position, Problems},
    fields::{Field, Given},
    folder,
    limits::Limits,
    overrides::Overrides,
    reader::{Fields, Reader},
    room::{Buckets, Scope},
    variables,
};
use crate::{
    fleet::{self, Fleet},
    policy::{
        OverrideId, Policy,
        shared_limits::{self, LONGEST_FRAME},
    },
};

const STORE: &str = "store";
const SENTINEL: &str = "sentinel";
const NAME: &str = "name";
const NODE: &str = "node";
const NODES: &str = "nodes";
const PASSWORD_FILE: &str = "password-file";
const KEY_FILE: &str = "key-file";
const CA_FILE: &str = "ca-file";
const ACCEPT_POLICY: &str = "accept-policy";

/// The most nodes of a fleet without `nodes`, and of any fleet with shared limits.
const NODES_UNSAID: u32 = 20;
const MOST_NODES: u64 = 100;

/// The fleet as the file has it. `None`: absent or invalid.
#[derive(Default)]
pub(super) struct Section {
    store: Option<StoreAddress>,
    sentinel: Option<String>,
    name: Option<Name>,
    node: Option<Name>,
    nodes: Option<u32>,
    key: Option<(PathBuf, Keys)>,
    password_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    accept_policy: Option<String>,
    shares_no_sources: bool,
}

type FleetField = Field<Section>;

pub(super) const FIELDS: &[FleetField] = &[
    FleetField::part(
        STORE,
        "`rediss://` (TLS 1.3) or `redis://`, the ACL user (the default user), host, port (6379) and database (0)",
    ),
    FleetField::new(
        SENTINEL,
        "the name of the [server](fleet.md#several-servers) at the Sentinels that `store` names",
        |fleet, given| fleet.sentinel = read_sentinel(given),
    )
    .then(read_store),
    FleetField::new(
        NAME,
        "the fleet's name, the same on all nodes",
        |fleet, given| fleet.name = read_name(given),
    ),
    FleetField::new(
        NODE,
        "this node's own name (the host's; if that is no name, its part before the first dot)",
        |fleet, given| fleet.node = read_name(given),
    ),
    FleetField::new(
        NODES,
        "the most nodes that run at once, for [`scope: fleet`](fleet.md#shared-limits), 1 to 100 (20)",
        read_nodes,
    ),
    FleetField::new(
        KEY_FILE,
        "the file with the fleet's [key](fleet.md#the-key), and perhaps a second that is accepted, too",
        |fleet, given| fleet.key = read_file(given, fleet::read_keys),
    ),
    FleetField::new(
        PASSWORD_FILE,
        "the file with the user's password",
        |fleet, given| {
            let file = read_file(given, fleet::read_password);
            fleet.password_file = file.map(|(path, _)| path);
        },
    ),
    FleetField::new(
        CA_FILE,
        "PEM certificates for the store's (the system's)",
        |fleet, given| {
            let file = read_file(given, fleet::read_certificates);
            fleet.ca_file = file.map(|(path, _)| path);
        },
    ),
    FleetField::new(
        ACCEPT_POLICY,
        "the file in [the folder](#several-files) that [`limiter fleet push`](fleet.md#a-policy-for-all-nodes) may \
         replace",
        |fleet, given| fleet.accept_policy = read_accepted(given),
    ),
    FleetField::new(
        "known-sources",
        "`on`, or `off`: neither share nor take [proven sources](fleet.md#known-sources)",
        |fleet, given| {
            given.choice(&mut fleet.shares_no_sources, [("on", false), ("off", true)]);
        },
    ),
];

/// Reads `fleet`, and reads each named file once to check its content.
pub(super) fn read(given: &mut Given<'_, '_, '_>) -> Option<(Fleet, Keys)> {
    let mut section = Section::default();
    let expected = "a map with 'store', 'name' and 'key-file'";
    let fields = given.map(expected, FIELDS, &mut section)?;
    for (field, what) in [
        (STORE, "the address of Valkey or Redis"),
        (NAME, "the fleet's name, the same on all nodes"),
        (KEY_FILE, "the file with the fleet's key"),
    ] {
        if fields.is_missing(field) {
            given.error(format!("needs '{field}', {what}"));
        }
    }
    if fields.is_missing(NODE) {
        section.node = own_name(given.reader, given.node.at);
    }
    let store = section.store?;
    if store.user.is_some() && fields.is_missing(PASSWORD_FILE) {
        given.error(format!(
            "needs '{PASSWORD_FILE}', the file with the password of the store's user"
        ));
    }
    if let Some(node) = fields.get(CA_FILE)
        && !store.tls
    {
        let message = "has no effect without TLS: begin the store's address with 'rediss://'";
        (given.reader).error(node.at, format!("{CA_FILE} {message}"));
    }
    let (key_file, keys) = section.key?;
    let fleet = Fleet {
        name: section.name?,
        node: section.node?,
        nodes: section.nodes.unwrap_or(NODES_UNSAID),
        store,
        password_file: section.password_file,
        key_file,
        ca_file: section.ca_file,
        accept_policy: section.accept_policy,
        known_sources: !section.shares_no_sources,
    };
    Some((fleet, keys))
}

/// Reads an address: of servers, or of Sentinels that know a server by its name.
fn read_store<'n>(section: &mut Section, reader: &mut Reader<'n, '_>, fields: &Fields<'n>) {
    if let Some(node) = fields.get(STORE)
        && let Some(text) = variables::text(reader, node, StoreAddress::EXPECTED)
    {
        section.store = StoreAddress::parse(&text, section.sentinel.as_deref())
            .inspect_err(|error| reader.error(node.at, format!("invalid store: {error}")))
            .ok();
    }
}

fn read_name(given: &mut Given<'_, '_, '_>) -> Option<Name> {
    let text = given.text_with_variables("a name")?;
    match Name::try_from(&*text) {
        Ok(name) => Some(name),
        Err(error) => {
            given.error(format!("invalid {} '{text}', {error}", given.name.text));
            None
        }
    }
}

/// Returns the node's name by that of its host.
fn own_name(reader: &mut Reader<'_, '_>, at: Position) -> Option<Name> {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let name = name_of(&host);
    if name.is_none() {
        let message = format!(
            "needs '{NODE}', this node's name, which no other node has: '{host}', the host's name, cannot be it"
        );
        reader.error(at, message);
    }
    name
}

/// Returns the name of a node by that of its host: the whole, or the part before the first dot if the whole is none.
/// `localhost` names no host in particular.
fn name_of(host: &str) -> Option<Name> {
    let first = host
        .split('.')
        .next()
        .filter(|first| *first != "localhost")?;
    Name::try_from(host).or_else(|_| first.try_into()).ok()
}

/// Reads the name under which Sentinels know the store's server.
fn read_sentinel(given: &mut Given<'_, '_, '_>) -> Option<String> {
    let expected = "the name under which the Sentinels know the server";
    let name = given.text_with_variables(expected)?;
    if is_store_word(&name) {
        return Some(name.into_owned());
    }
    given.error(format!(
        "invalid {SENTINEL} '{name}', expected letters, digits, '-', '_' and '.'"
    ));
    None
}

/// Reads the most nodes that run at once.
fn read_nodes(section: &mut Section, given: &mut Given<'_, '_, '_>) {
    if given.reader.scalar(given.node).is_none() {
        given.error(format!(
            "{NODES} is the most nodes that run at once, such as 5: their names are not listed"
        ));
        return;
    }
    let nodes = given.reader.whole(given.node, NODES, 1..=MOST_NODES);
    section.nodes = nodes.and_then(|nodes| u32::try_from(nodes).ok());
}

/// Returns the secret for numbering names alike on all nodes; `None`: no limit needs it.
pub(super) fn names_key(of_fleet: Option<(&Fleet, Keys)>, policy: &Policy) -> Option<HashKey> {
    let (fleet, keys) = of_fleet.filter(|_| policy.needs_names_alike())?;
    Some(fleet.names_key(&keys))
}

/// Reads the name of the file, in the folder beside the configuration, that other nodes may replace.
fn read_accepted(given: &mut Given<'_, '_, '_>) -> Option<String> {
    let name = given.text_with_variables("a file's name")?;
    if folder::is_name(&name) {
        return Some(name.into_owned());
    }
    given.error(format!(
        "{ACCEPT_POLICY} '{name}' must be the name of a file in the folder beside the \
         configuration, such as 'fleet.yaml'"
    ));
    None
}

/// Returns the file's path and content.
fn read_file<T, E: Display>(
    given: &mut Given<'_, '_, '_>,
    read: impl FnOnce(&Path) -> Result<T, E>,
) -> Option<(PathBuf, T)> {
    let name = given.text_with_variables("a file's name")?;
    let path = given.reader.named_path(given.node.at, &name)?;
    match read(&path) {
        Ok(content) => Some((path, content)),
        Err(error) => {
            given.error(format!("the file '{}' {error}", path.display()));
            None
        }
    }
}

/// Reports shared limits (`scope: fleet`) that the other sections rule out.
pub(super) fn check_shared(
    (limits, overrides): (&Limits, &Overrides),
    fleet: Option<&Fleet>,
    buckets: Buckets,
    problems: &mut Problems,
) {
    for (index, limit) in limits.iter() {
        let Some(position) = limit.fields.fleet else {
            continue;
        };
        let needs = |what: &str| format!("'scope: fleet' needs {what}");
        let Some(fleet) = fleet else {
            let message = needs("a section 'fleet' with the store");
            problems.report_at(position, message);
            continue;
        };
        if buckets.scope != Scope::Host {
            problems.report_at(position, needs("`buckets: {scope: host}`"));
        }
        let nodes = fleet.nodes;
        let least = shared_limits::least_burst(limit.cost, nodes);
        for (part, rate) in limit.rates.iter().enumerate() {
            let others = overrides.get(&(index, part)).into_iter().flatten();
            let mut wanting = others.filter(|other| other.rate.burst < least);
            if rate.burst < least {
                problems.report_at(position, too_small(limit.cost, nodes, least, None));
            } else if let Some(other) = wanting.next() {
                problems.report_at(
                    position,
                    too_small(limit.cost, nodes, least, Some(&other.id)),
                );
            }
        }
    }
}

fn too_small(cost: Cost, nodes: u32, least: u64, of: Option<&OverrideId>) -> String {
    let held = match cost {
        Cost::Bytes => format!("a frame of {LONGEST_FRAME} bytes"),
        _ => "a token".to_owned(),
    };
    let also = of.map_or_else(String::new, |id| format!(", also in the override '{id}'"));
    format!(
        "'scope: fleet' among {nodes} nodes needs a burst of at least {least}{also}: a minimum share is a twentieth of \
         it, divided by the nodes, and holds {held}; `fleet: {{nodes: …}}` is the most nodes that run at once"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_names_its_node() {
        let long = format!("fra-1.{}", "x".repeat(63));
        for (host, node) in [
            ("fra-1", Some("fra-1")),
            ("fra-1.example", Some("fra-1.example")),
            ("fra-1.Example", Some("fra-1")),
            (&long, Some("fra-1")),
            ("FRA-1", None),
            ("FRA-1.example", None),
            ("(none)", None),
            ("localhost", None),
            ("localhost.localdomain", None),
            ("", None),
        ] {
            assert_eq!(name_of(host).as_ref().map(Name::as_str), node, "{host}");
        }
    }
}
