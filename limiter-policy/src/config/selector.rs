//! The section `selector`, as in Traffic Server's `rate_limit` plugin. Each item becomes a limit on the open
//! connections to a server name.

use limiter_common::limit::{Cost, IdFormat};

use super::{
    connections, dns_name, flat_metrics,
    limit::{self, Definition, EXCLUDE, FieldPositions, HTTPS_PORT, IP_REP, METRICS},
    limits::Limits,
    list_names,
    node::Node,
    queue,
    reader::{Fields, FirstPositions, Name, Reader},
};
use crate::policy::{DnsName, Limit, Match, Mode, NamePattern, Rate};

const SNI: &str = "sni";
const ALIASES: &str = "aliases";
const RATE: &str = "rate";

/// Traffic Server's names of the selector for all other names.
const FALLBACKS: [&str; 2] = ["*", "default"];

const FIELDS: [&str; 8] = [
    SNI,
    ALIASES,
    connections::LIMIT,
    RATE,
    queue::FIELD,
    METRICS,
    IP_REP,
    EXCLUDE,
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
        let Some(fields) = reader.fields(item, "a map with 'sni' and 'limit'", &FIELDS) else {
            limits.lack_some();
            continue;
        };
        let Some(sni) = fields.get(SNI) else {
            if fields.is_missing(SNI) {
                let message = "needs 'sni', the name that clients ask for, or '*' for all others";
                reader.error(item.at, message);
            }
            limits.lack_some();
            continue;
        };
        let Some(text) = reader.text(sni, "a name, such as 'www.example.com', or '*'") else {
            limits.lack_some();
            continue;
        };
        let name = Name { text, at: sni.at };
        let limit = read_one(reader, &fields, name, sni, several, &mut names);
        limits.add(reader, name, limit);
    }
    Some(())
}

fn read_one<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    name: Name<'n>,
    sni: &'n Node<'n>,
    several: bool,
    names: &mut FirstPositions<DnsName>,
) -> Option<Definition> {
    let is_fallback = FALLBACKS.contains(&name.text);
    let of_sni = (!is_fallback).then_some(sni);
    let aliases = fields.get(ALIASES);
    let aliases = aliases.map(|node| reader.one_or_more(node, "names"));
    let written = of_sni.into_iter().chain(aliases.into_iter().flatten());
    let mut patterns = Vec::new();
    let mut is_right = true;
    for node in written {
        let expected = "a name, such as 'www.example.com'";
        let one: Option<DnsName> = dns_name::read(reader, node, expected);
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
    if let Some((field, node)) = fields.find(RATE)
        && reader.whole(node, RATE, 0..=u64::MAX) != Some(0)
    {
        let message = "'rate' is not for connections by name: give a second limit, of cost handshakes, to \
                       their port";
        reader.error(field.at, message);
    }
    let metrics = fields.get(METRICS);
    let metrics = metrics.and_then(|node| flat_metrics::read(reader, name, node));
    // As in Traffic Server, an absent limit or 0 means no bound.
    let most = match fields.get(connections::LIMIT) {
        Some(node) => reader.whole(node, connections::LIMIT, 0..=connections::MOST)?,
        None => 0,
    };
    let most = if most == 0 { connections::MOST } else { most };
    let mode = Mode::default();
    let (metrics, of_metrics) = metrics.unzip();
    let (ip_rep, of_ip_rep) = limit::read_sieve(reader, fields).unzip();
    let limit = Limit {
        matching: Match {
            protocols: vec![Match::TCP],
            destination_ports: vec![HTTPS_PORT..=HTTPS_PORT],
            server_names: patterns,
            // A single selector covers all names.
            otherwise: is_fallback && several,
            ..Match::default()
        },
        queue: queue::read(reader, fields, mode),
        ip_rep,
        metrics,
        mode,
        ..Limit::with_name(name.text, IdFormat::Total, Cost::Connections)
    };
    let rates = vec![Rate::of_connections(most)];
    is_right.then_some(Definition {
        fields: FieldPositions {
            ip_rep: of_ip_rep,
            metrics: of_metrics,
            ..FieldPositions::default()
        },
        exclude_lists: list_names::read_field(reader, fields, EXCLUDE, Some(name.text)),
        ..Definition::new(limit, reader.position(name.at), rates)
    })
}
