//! The section `selector`, as in Traffic Server's `rate_limit` plugin. Each item becomes a limit on the open
//! connections to a server name.

use limiter_common::limit::{Cost, IdFormat};

use super::{
    connections, dns_match,
    fields::{self, Field, Given},
    limit::Definition,
    limit_fields::{self, EXCLUDE, HTTPS_PORT, IP_REP, METRICS},
    limits::Limits,
    list_names,
    node::Node,
    reader::{FirstPositions, Name, Reader},
};
use crate::policy::{DnsName, Limit, Match, NamePattern, Rate};

const SNI: &str = "sni";
const ALIASES: &str = "aliases";
const RATE: &str = "rate";

/// Traffic Server's names of the selector for all other names.
const FALLBACKS: [&str; 2] = ["*", "default"];

const FIELDS: &[Field<Definition>] = &[
    Field::unlisted(SNI, |limit, given| {
        if let Some(name) = given.text("a name, such as 'www.example.com', or '*'") {
            name.clone_into(&mut limit.name);
        }
    }),
    Field::part(ALIASES, ""),
    Field::unlisted(connections::LIMIT, |limit, given| {
        let mut most = 0;
        given.whole(&mut most, 0..=connections::MOST);
        // As in Traffic Server, 0 means no bound.
        limit.rates = vec![rate(most)];
    }),
    Field::unlisted(RATE, refuse_rate),
    Field::unlisted(connections::QUEUE, |limit, given| {
        limit.queue = connections::read_queue(given, limit.mode);
    }),
    Field::unlisted(METRICS, limit_fields::read_metrics),
    Field::unlisted(IP_REP, limit_fields::read_sieve),
    Field::unlisted(EXCLUDE, |limit, given| {
        limit.exclude_lists = list_names::read(given, Some(&limit.limit.name));
    }),
];

/// Reads the list of selectors, and adds one limit for each.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    limits: &mut Limits,
) -> Option<()> {
    let items = reader.items(node, "a list of maps, each with 'sni' and 'limit'")?;
    let mut names = FirstPositions::default();
    let several = items.len() > 1;
    for item in items {
        match read_one(reader, item, several, &mut names) {
            Some((name, limit)) => limits.add(reader, name, limit),
            None => limits.lack_some(),
        }
    }
    Some(())
}

/// Reads a selector, with its name; `None`: it has no name.
fn read_one<'n>(
    reader: &mut Reader<'n, '_>,
    item: &'n Node<'n>,
    several: bool,
    names: &mut FirstPositions<DnsName>,
) -> Option<(Name<'n>, Option<Definition>)> {
    let limit = Limit::with_name("", IdFormat::Total, Cost::Connections);
    let mut limit = Definition::new(limit, reader.position(item.at), vec![rate(0)]);
    let expected = "a map with 'sni' and 'limit'";
    let fields = fields::read(reader, item, expected, FIELDS, &mut limit)?;
    let Some(sni) = fields.get(SNI) else {
        if fields.is_missing(SNI) {
            let message = "needs 'sni', the name that clients ask for, or '*' for all others";
            reader.error(item.at, message);
        }
        return None;
    };
    let name = Name {
        text: reader.scalar(sni).filter(|_| !limit.name.is_empty())?,
        at: sni.at,
    };
    limit.position = reader.position(name.at);
    let is_fallback = FALLBACKS.contains(&name.text);
    let of_sni = (!is_fallback).then_some(sni);
    let aliases = fields.get(ALIASES);
    let aliases = aliases.map(|node| reader.one_or_more(node, "names"));
    let written = of_sni.into_iter().chain(aliases.into_iter().flatten());
    let mut patterns = Vec::new();
    let mut is_right = true;
    for node in written {
        let expected = "a name, such as 'www.example.com'";
        let one: Option<DnsName> = dns_match::read_name(reader, node, expected);
        let is_first = one.as_ref().is_some_and(|one| {
            names.is_first(reader, one.clone(), node.at, || format!("name '{one}'"))
        });
        is_right &= is_first;
        patterns.extend(one.map(|name| NamePattern { name, below: false }));
    }
    if is_fallback {
        if let Some((field, _)) = fields.find(ALIASES) {
            let message = "'aliases' has no effect: this selector is for all other names";
            reader.error(field.at, message);
        }
        patterns = vec![DnsName::default().pattern_below()];
    }
    patterns.sort_unstable();
    limit.matching = Match {
        protocols: vec![Match::TCP],
        destination_ports: vec![HTTPS_PORT..=HTTPS_PORT],
        server_names: patterns,
        // A single selector covers all names.
        otherwise: is_fallback && several,
        ..Match::default()
    };
    Some((name, is_right.then_some(limit)))
}

/// Returns the rate for a number of connections; 0: no bound, as in Traffic Server.
fn rate(most: u64) -> Rate {
    Rate::of_connections(if most == 0 { connections::MOST } else { most })
}

fn refuse_rate(_: &mut Definition, given: &mut Given<'_, '_, '_>) {
    if given.reader.whole(given.node, RATE, 0..=u64::MAX) != Some(0) {
        let message = "'rate' is not for connections by name: give a second limit, of cost handshakes, to \
                       their port";
        given.reader.error(given.name.at, message);
    }
}
