//! The section `fleet`: the store, this node's name, and the files with the secrets.

use std::{
    borrow::Cow,
    fmt::Display,
    path::{Path, PathBuf},
};

use limiter_common::{limit::Cost, table::HashKey};
use limiter_fleet::{Keys, Name, StoreAddress, is_store_word};

use super::{
    Buckets, Position, Scope, diagnostics::Problems, folder, limits::Limits, node::Node,
    overrides::Overrides, reader::Fields, reader::Reader, surroundings::named_path, variables,
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
const KNOWN_SOURCES: &str = "known-sources";

/// The most nodes of a fleet without `nodes`, and of any fleet with shared limits.
const NODES_UNSAID: u32 = 20;
const MOST_NODES: u64 = 100;

/// Reads `fleet`, and reads each named file once to check its content.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
) -> Option<(Fleet, Keys)> {
    let known = [
        STORE,
        SENTINEL,
        NAME,
        NODE,
        NODES,
        PASSWORD_FILE,
        KEY_FILE,
        CA_FILE,
        ACCEPT_POLICY,
        KNOWN_SOURCES,
    ];
    let expected = "a map with 'store', 'name' and 'key-file'";
    let fields = reader.fields(node, expected, &known)?;
    for (field, what) in [
        (STORE, "the address of Valkey or Redis"),
        (NAME, "the fleet's name, the same on all nodes"),
        (KEY_FILE, "the file with the fleet's key"),
    ] {
        if fields.is_missing(field) {
            reader.error(node.at, format!("needs '{field}', {what}"));
        }
    }
    let sentinel = optional(&fields, SENTINEL, |node| read_sentinel(reader, node));
    let store = (fields.get(STORE)).and_then(|node| {
        let sentinel = sentinel.as_ref().ok().and_then(Option::as_deref);
        read_store(reader, node, sentinel)
    });
    let name = (fields.get(NAME)).and_then(|node| read_name(reader, node, NAME));
    let this = match fields.get(NODE) {
        Some(node) => read_name(reader, node, NODE),
        None if fields.is_missing(NODE) => own_name(reader, node.at),
        None => None,
    };
    let nodes = optional(&fields, NODES, |node| read_nodes(reader, node));
    let key = (fields.get(KEY_FILE))
        .and_then(|node| read_file(reader, node, directory, fleet::read_keys));
    let password_file = optional(&fields, PASSWORD_FILE, |node| {
        read_file(reader, node, directory, fleet::read_password)
    });
    let ca_file = optional(&fields, CA_FILE, |node| {
        read_file(reader, node, directory, fleet::read_certificates)
    });
    let accepts = optional(&fields, ACCEPT_POLICY, |node| read_accepted(reader, node));
    let sources = optional(&fields, KNOWN_SOURCES, |node| {
        reader.choice(node, KNOWN_SOURCES, [("on", true), ("off", false)])
    });
    let store = store?;
    if store.user.is_some() && fields.is_missing(PASSWORD_FILE) {
        reader.error(
            node.at,
            format!("needs '{PASSWORD_FILE}', the file with the password of the store's user"),
        );
    }
    if let Some(node) = fields.get(CA_FILE)
        && !store.tls
    {
        let message = "has no effect without TLS: begin the store's address with 'rediss://'";
        reader.error(node.at, format!("{CA_FILE} {message}"));
    }
    let (key_file, keys) = key?;
    let fleet = Fleet {
        name: name?,
        node: this?,
        nodes: nodes.ok()?.unwrap_or(NODES_UNSAID),
        store,
        password_file: password_file.ok()?.map(|(path, _)| path),
        key_file,
        ca_file: ca_file.ok()?.map(|(path, _)| path),
        accept_policy: accepts.ok()?,
        known_sources: sources.ok()?.unwrap_or(true),
    };
    Some((fleet, keys))
}

/// An error was reported.
struct Reported;

/// Reads a field that may be absent.
fn optional<'n, T>(
    fields: &Fields<'n>,
    field: &str,
    read: impl FnOnce(&'n Node<'n>) -> Option<T>,
) -> Result<Option<T>, Reported> {
    let read = fields.get(field).map(|node| read(node).ok_or(Reported));
    read.transpose()
}

/// Reads an address: of servers, or of Sentinels that know a server by its name.
fn read_store<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    sentinel: Option<&str>,
) -> Option<StoreAddress> {
    let text = variables::text(reader, node, StoreAddress::EXPECTED)?;
    let store = StoreAddress::parse(&text, sentinel);
    store
        .inspect_err(|error| reader.error(node.at, format!("invalid store: {error}")))
        .ok()
}

fn read_name<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>, what: &str) -> Option<Name> {
    let text = variables::text(reader, node, "a name")?;
    match Name::try_from(&*text) {
        Ok(name) => Some(name),
        Err(error) => {
            reader.error(node.at, format!("invalid {what} '{text}', {error}"));
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
fn read_sentinel<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Cow<'n, str>> {
    let expected = "the name under which the Sentinels know the server";
    let name = variables::text(reader, node, expected)?;
    if is_store_word(&name) {
        return Some(name);
    }
    let message =
        format!("invalid {SENTINEL} '{name}', expected letters, digits, '-', '_' and '.'");
    reader.error(node.at, message);
    None
}

/// Reads the most nodes that run at once.
fn read_nodes<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<u32> {
    if reader.scalar(node).is_none() {
        let message = format!(
            "{NODES} is the most nodes that run at once, such as 5: their names are not listed"
        );
        reader.error(node.at, message);
        return None;
    }
    let nodes = reader.whole(node, NODES, 1..=MOST_NODES)?;
    u32::try_from(nodes).ok()
}

/// Returns the secret for numbering names alike on all nodes; `None`: no limit needs it.
pub(super) fn names_key(of_fleet: Option<(&Fleet, Keys)>, policy: &Policy) -> Option<HashKey> {
    let (fleet, keys) = of_fleet.filter(|_| policy.needs_names_alike())?;
    Some(fleet.names_key(&keys))
}

/// Reports shared limits (`scope: fleet`) that the other sections rule out.
pub(super) fn check_limits(
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

/// Reads the name of the file, in the folder beside the configuration, that other nodes may replace.
fn read_accepted<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<String> {
    let name = variables::text(reader, node, "a file's name")?;
    if folder::is_name(&name) {
        Some(name.into_owned())
    } else {
        let message = format!(
            "{ACCEPT_POLICY} '{name}' must be the name of a file in the folder beside the \
             configuration, such as 'fleet.yaml'"
        );
        reader.error(node.at, message);
        None
    }
}

/// Returns the file's path and content.
fn read_file<'n, T, E: Display>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: Option<&Path>,
    read: impl FnOnce(&Path) -> Result<T, E>,
) -> Option<(PathBuf, T)> {
    let name = variables::text(reader, node, "a file's name")?;
    let path = named_path(reader, node.at, &name, directory)?;
    match read(&path) {
        Ok(content) => Some((path, content)),
        Err(error) => {
            reader.error(node.at, format!("the file '{}' {error}", path.display()));
            None
        }
    }
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
