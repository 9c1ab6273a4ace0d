//! The section `subscribers`: each subscriber's prefixes.

use std::collections::BTreeMap;

use ipnet::IpNet;

use super::{
    id,
    node::{Node, Value},
    prefix,
    reader::{FirstPositions, Reader},
};
use crate::policy::SubscriberNumber;

const PREFIXES: &str = "prefixes";
const COMMENT: &str = "comment";

/// The prefixes of each subscriber, sorted.
pub(super) type Subscribers = BTreeMap<SubscriberNumber, Vec<IpNet>>;

/// Reads a map of subscribers' numbers to prefixes.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Subscribers> {
    let entries = reader.entries(node, "a map of subscribers' numbers to their prefixes")?;
    if entries.is_empty() {
        reader.error(
            node.at,
            "no subscribers: name at least one, or leave the section out",
        );
    }
    let mut subscribers = Subscribers::new();
    let mut seen = FirstPositions::default();
    for (name, body) in entries {
        let number = id::subscriber_number(name.text);
        if number.is_none() {
            reader.error(
                name.at,
                format!(
                    "invalid subscriber '{}', must be a number from 1 to {}, in digits",
                    name.text,
                    SubscriberNumber::MAX
                ),
            );
        }
        let prefixes = read_subscriber(reader, body, &mut seen);
        if let Some(number) = number {
            subscribers.insert(number, prefixes);
        }
    }
    Some(subscribers)
}

/// Reads a subscriber's prefixes: one, a list, or either with a comment.
fn read_subscriber<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    seen: &mut FirstPositions<IpNet>,
) -> Vec<IpNet> {
    let is_map = matches!(node.value, Value::Mapping(_));
    if !is_map || prefix::colon_at_end(reader, node).is_some() {
        return read_prefixes(reader, node, seen);
    }
    let Some(fields) = reader.fields(node, "prefixes", &[PREFIXES, COMMENT]) else {
        return Vec::new();
    };
    if let Some(node) = fields.get(COMMENT) {
        reader.text(node, "a comment");
    }
    if fields.is_missing(PREFIXES) {
        reader.error(node.at, format!("missing field '{PREFIXES}'"));
    }
    fields
        .get(PREFIXES)
        .map(|node| read_prefixes(reader, node, seen))
        .unwrap_or_default()
}

fn read_prefixes<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    seen: &mut FirstPositions<IpNet>,
) -> Vec<IpNet> {
    let mut prefixes = Vec::new();
    for item in reader.one_or_more(node, PREFIXES) {
        if let Some(prefix) = prefix::read(reader, item, "prefix")
            && seen.is_first(reader, prefix, item.at, || format!("prefix '{prefix}'"))
        {
            prefixes.push(prefix);
        }
    }
    prefixes.sort_unstable();
    prefixes
}
