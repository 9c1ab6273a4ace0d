//! The section `overrides`, in both of Boulder's forms.

use std::collections::{BTreeMap, HashMap};

use ipnet::IpNet;
use limiter_common::limit::{BuiltIn, LimitId};

use super::{
    diagnostics::Position,
    id, limits,
    node::{Node, Value},
    rate,
    reader::{Name, Reader},
};
use crate::policy::{Override, Rate};

const IDS: &str = "ids";
const ID: &str = "id";
const COMMENT: &str = "comment";

/// The overrides by limit, each limit's in the order of the address.
pub(super) type Overrides = BTreeMap<LimitId, Vec<Override>>;

/// Reads either form.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Overrides {
    let mut collected = Collected::default();
    match &node.value {
        Value::Mapping(_) => collected.read_map(reader, node),
        Value::Sequence(items) => {
            if items.is_empty() {
                reader.error(node.at, NONE);
            }
            for item in items {
                collected.read_item(reader, item);
            }
        }
        _ => reader.unexpected(
            node,
            "a map of 'Name:id' to burst, count and period, or a list of overrides with 'ids'",
        ),
    }
    collected.into_overrides()
}

const NONE: &str = "no overrides: name at least one, or leave the section out";

/// What was read so far.
#[derive(Default)]
struct Collected {
    overrides: Overrides,
    first: HashMap<(LimitId, IpNet), Position>,
}

/// An id as the file has it.
struct WrittenId<'n> {
    text: &'n str,
    at: Position,
    comment: Option<&'n str>,
}

impl Collected {
    /// The key form: `Name:id` to its rate.
    fn read_map<'n>(&mut self, reader: &mut Reader<'n, '_>, node: &'n Node<'n>) {
        let Some(entries) = reader.entries(node, "a map of 'Name:id'") else {
            return;
        };
        if entries.is_empty() {
            reader.error(node.at, NONE);
        }
        for (key, body) in entries {
            // The first colon: IPv6 ids have more of them.
            let (name, id) = match key.text.split_once(':') {
                Some((name, id)) => (name, Some(id)),
                None => (key.text, None),
            };
            let limit = limits::named(
                reader,
                Name {
                    text: name,
                    at: key.at,
                },
            );
            if let (Some(limit), None) = (limit, id) {
                reader.error(
                    key.at,
                    format!(
                        "missing id, expected '{}:' and {}",
                        limit.name,
                        id::expectation(limit.id_format)
                    ),
                );
            }
            let fields = reader.fields(body, "burst, count and period", &rate::FIELDS);
            let rate = fields.and_then(|fields| {
                rate::read(reader, &fields, key.at, limit.map(|limit| limit.cost))
            });
            if let (Some(limit), Some(text)) = (limit, id) {
                let id = WrittenId {
                    text,
                    at: key.at,
                    comment: None,
                };
                self.add(reader, limit, &id, rate);
            }
        }
    }

    /// One item of the list form: a map of names to a rate with ids.
    fn read_item<'n>(&mut self, reader: &mut Reader<'n, '_>, item: &'n Node<'n>) {
        let expected = "a limit's name with burst, count, period and ids";
        let Some(entries) = reader.entries(item, expected) else {
            return;
        };
        if entries.is_empty() {
            reader.unexpected(item, expected);
        }
        for (name, body) in entries {
            let limit = match name.text.split_once(':') {
                Some((prefix, id)) if limits::find(prefix).is_some() => {
                    reader.error(
                        name.at,
                        format!(
                            "unknown limit '{}', did you mean '{prefix}' with 'ids: [{id}]'?",
                            name.text
                        ),
                    );
                    None
                }
                _ => limits::named(reader, name),
            };
            let [burst, count, period] = rate::FIELDS;
            let Some(fields) = reader.fields(
                body,
                "burst, count, period and ids",
                &[burst, count, period, IDS],
            ) else {
                continue;
            };
            let rate = rate::read(reader, &fields, name.at, limit.map(|limit| limit.cost));
            let Some(ids) = fields.get(IDS) else {
                if fields.is_missing(IDS) {
                    reader.error(name.at, format!("missing field '{IDS}'"));
                }
                continue;
            };
            self.read_ids(reader, limit, ids, rate);
        }
    }

    fn read_ids<'n>(
        &mut self,
        reader: &mut Reader<'n, '_>,
        limit: Option<&BuiltIn>,
        node: &'n Node<'n>,
        rate: Option<Rate>,
    ) {
        let Some(items) = reader.items(node, "a list of ids") else {
            return;
        };
        if items.is_empty() {
            reader.error(node.at, "no ids: name at least one");
        }
        for item in items {
            if let (Some(id), Some(limit)) = (written_id(reader, item), limit) {
                self.add(reader, limit, &id, rate);
            }
        }
    }

    /// Adds an override; `rate` is `None` when it is wrong, and then only the id is checked.
    fn add(
        &mut self,
        reader: &mut Reader<'_, '_>,
        limit: &BuiltIn,
        written: &WrittenId<'_>,
        rate: Option<Rate>,
    ) {
        let id = match id::parse(written.text, limit.id_format) {
            Ok(id) => id,
            Err(message) => return reader.error(written.at, message),
        };
        if let Some(first) = self.first.get(&(limit.id, id)) {
            let message = format!(
                "duplicate id '{}' of {}, first at {first}",
                written.text, limit.name
            );
            return reader.error(written.at, message);
        }
        self.first.insert((limit.id, id), written.at);
        if let Some(rate) = rate {
            self.overrides.entry(limit.id).or_default().push(Override {
                id: crate::policy::OverrideId::Prefix(id),
                rate,
                comment: written.comment.map(ToOwned::to_owned),
            });
        }
    }

    fn into_overrides(mut self) -> Overrides {
        for overrides in self.overrides.values_mut() {
            overrides.sort_unstable_by_key(|one| one.id);
        }
        self.overrides
    }
}

/// An item of `ids`: an id, or an id with a comment.
fn written_id<'n>(reader: &mut Reader<'n, '_>, item: &'n Node<'n>) -> Option<WrittenId<'n>> {
    const EXPECTED: &str = "an id";
    let Value::Mapping(entries) = &item.value else {
        return Some(WrittenId {
            text: reader.text(item, EXPECTED)?,
            at: item.at,
            comment: None,
        });
    };
    if let [(key, value)] = entries.as_slice()
        && let Value::Null = value.value
        && let Some(text) = reader.scalar(key)
        && text.contains(':')
    {
        // YAML takes the last colon of `- 2001:db8::` for the one of `name: value`.
        reader.error(
            key.at,
            format!(
                "expected {EXPECTED}, found a mapping; with a colon at its end it must be \
                     in quotes: '{text}:'"
            ),
        );
        return None;
    }
    let fields = reader.fields(item, EXPECTED, &[ID, COMMENT])?;
    let comment = fields
        .get(COMMENT)
        .and_then(|node| reader.text(node, "a comment"));
    let Some(node) = fields.get(ID) else {
        if fields.is_missing(ID) {
            reader.error(item.at, format!("missing field '{ID}'"));
        }
        return None;
    };
    Some(WrittenId {
        text: reader.text(node, EXPECTED)?,
        at: node.at,
        comment,
    })
}
