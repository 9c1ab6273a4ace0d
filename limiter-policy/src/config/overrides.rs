//! The section `overrides`, in both of Boulder's forms.

use std::collections::BTreeMap;

use ipnet::IpNet;
use limiter_common::{
    address::Address,
    limit::{Cost, KeyPart, NameKind},
};

use super::{
    connections,
    diagnostics::{FilePosition, Position},
    fields::{self, Field},
    limit::Definition,
    limits::{LimitIndex, Limits},
    name_id,
    node::{Node, Value},
    prefix,
    rate::{self, RateContext},
    reader::{Fields, FirstPositions, Name, Reader},
    reserve, strategy,
    subscribers::Subscribers,
};
use crate::policy::{OverriddenName, Override, OverrideId, Rate, most_bits};

const IDS: &str = "ids";
const ID: &str = "id";
const COMMENT: &str = "comment";

/// What an override says about connections, read from its fields.
struct OfConnections {
    /// The cost of the limit; `None`: unknown.
    cost: Option<Cost>,
    /// The number that may be open at once.
    number: Option<u64>,
}

type OverrideField = Field<OfConnections>;

const FIELDS: &[OverrideField] = &[
    rate_field(rate::BURST),
    rate_field(rate::COUNT),
    rate_field(rate::PERIOD),
    rate_field(rate::RATE),
    OverrideField::unlisted(connections::LIMIT, |of, given| {
        of.number = connections::number(given.reader, given.node);
    })
    .unless(|of| connections::why_no_number(of.cost?)),
    OverrideField::refused(strategy::FIELD, |_| {
        Some("belongs to the limit: an override changes only its numbers".to_owned())
    }),
    OverrideField::refused(reserve::FIELD, |_| {
        let why = "belongs to the limit: there, a percentage is of each override's own burst";
        Some(why.to_owned())
    }),
    OverrideField::part(IDS, ""),
];

const fn rate_field(name: &'static str) -> OverrideField {
    OverrideField::part(name, "").unless(|of| connections::why_no_rate(of.cost?))
}

/// The map has the ids in the names.
const FIELDS_OF_MAP: &[OverrideField] = FIELDS.split_at(FIELDS.len() - 1).0;

/// The overrides by limit and index of its rate, sorted by id.
pub(super) type Overrides = BTreeMap<(LimitIndex, usize), Vec<Override>>;

#[derive(Default)]
pub(super) struct Section {
    pub(super) overrides: Overrides,
    /// The ids with names, which other sections must define.
    pub(super) named: Vec<NamedId>,
}

pub(super) struct NamedId {
    pub(super) limit: LimitIndex,
    pub(super) name: OverriddenName,
    pub(super) at: FilePosition,
}

/// Reads either form. Adds built-in limits that occur only here to `limits`. `subscribers` is `None` if
/// unknown.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    limits: &mut Limits,
    subscribers: Option<&Subscribers>,
) -> Option<Section> {
    let mut collected = OverrideCollector {
        limits,
        subscribers,
        section: Section::default(),
        seen: FirstPositions::default(),
    };
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
        _ => {
            reader.unexpected(
                node,
                "a map of 'Name:id' to a rate, or a list of overrides with 'ids'",
            );
            return None;
        }
    }
    Some(collected.into_section())
}

const NONE: &str = "no overrides: name at least one, or leave the section out";

/// The overrides read so far.
struct OverrideCollector<'c> {
    limits: &'c mut Limits,
    subscribers: Option<&'c Subscribers>,
    section: Section,
    seen: FirstPositions<(LimitIndex, OverrideId)>,
}

/// An id as the file spells it.
struct IdText<'n> {
    text: &'n str,
    at: Position,
    comment: Option<&'n str>,
}

impl OverrideCollector<'_> {
    /// Reads the map form: `Name:id` to a rate.
    fn read_map<'n>(&mut self, reader: &mut Reader<'n, '_>, node: &'n Node<'n>) {
        let Some(entries) = reader.entries(node, "a map of 'Name:id'") else {
            return;
        };
        if entries.is_empty() {
            reader.error(node.at, NONE);
        }
        for (key, body) in entries {
            // Split at the first colon: IPv6 ids have more of them.
            let (name, id) = match key.text.split_once(':') {
                Some((name, id)) => (name, Some(id)),
                None => (key.text, None),
            };
            let name = Name {
                text: name,
                at: key.at,
            };
            let limit = self.limit(reader, name);
            if let (Some(limit), None) = (limit, id) {
                let expected = name_id::expectation(self.limits.get(limit).keys());
                reader.error(
                    key.at,
                    format!(
                        "missing id, expected '{}:' followed by {expected}",
                        name.text
                    ),
                );
            }
            let (_, rates) =
                self.read_fields(reader, limit, body, rate::EXPECTED, FIELDS_OF_MAP, key.at);
            if let (Some(limit), Some(text)) = (limit, id) {
                let id = IdText {
                    text,
                    at: key.at,
                    comment: None,
                };
                self.add(reader, limit, &id, rates.as_deref());
            }
        }
    }

    /// Reads one item of the list form: a map of names to a rate with ids.
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
                Some((prefix, id)) if self.limits.contains(prefix) => {
                    reader.error(
                        name.at,
                        format!(
                            "unknown limit '{}', did you mean '{prefix}' with 'ids: [{id}]'?",
                            name.text
                        ),
                    );
                    None
                }
                _ => self.limit(reader, name),
            };
            let expected = "burst, count, period and ids";
            let (fields, rates) = self.read_fields(reader, limit, body, expected, FIELDS, name.at);
            let Some(fields) = fields else {
                continue;
            };
            let Some(ids) = fields.get(IDS) else {
                if fields.is_missing(IDS) {
                    reader.error(name.at, format!("missing field '{IDS}'"));
                }
                continue;
            };
            self.read_ids(reader, limit, ids, rates.as_deref());
        }
    }

    fn read_ids<'n>(
        &mut self,
        reader: &mut Reader<'n, '_>,
        limit: Option<LimitIndex>,
        node: &'n Node<'n>,
        rates: Option<&[Rate]>,
    ) {
        for item in reader.one_or_more(node, "ids") {
            if let (Some(id), Some(limit)) = (id_text(reader, item), limit) {
                self.add(reader, limit, &id, rates);
            }
        }
    }

    /// Reads the fields of an override, and its rates. Reports missing fields at `owner`.
    fn read_fields<'n>(
        &self,
        reader: &mut Reader<'n, '_>,
        limit: Option<LimitIndex>,
        body: &'n Node<'n>,
        expected: &str,
        descriptions: &[OverrideField],
        owner: Position,
    ) -> (Option<Fields<'n>>, Option<Vec<Rate>>) {
        let mut of_connections = OfConnections {
            cost: limit.map(|limit| self.limits.get(limit).cost),
            number: None,
        };
        let fields = fields::read(reader, body, expected, descriptions, &mut of_connections);
        let number = of_connections.number;
        let rates = fields
            .as_ref()
            .and_then(|fields| self.rates(reader, limit, fields, number, owner));
        (fields, rates)
    }

    /// Reads the rates of an override, as many as its limit has. Reports missing fields at `owner`.
    fn rates<'n>(
        &self,
        reader: &mut Reader<'n, '_>,
        limit: Option<LimitIndex>,
        fields: &Fields<'n>,
        number: Option<u64>,
        owner: Position,
    ) -> Option<Vec<Rate>> {
        let limit = limit.map(|limit| self.limits.get(limit));
        if limit.is_some_and(|limit| limit.cost == Cost::Connections) {
            if fields.is_missing(connections::LIMIT) {
                let message = format!("missing field '{}'", connections::LIMIT);
                reader.error(owner, message);
            }
            return Some(vec![Rate::of_connections(number?)]);
        }
        if !fields.is_missing(connections::LIMIT) {
            return None;
        }
        let parts = limit.and_then(Definition::parts);
        if let (Some(limit), Some(parts @ 2..)) = (limit, parts)
            && fields.is_missing(rate::RATE)
        {
            let message = format!(
                "{} has {parts} rates, so its overrides need as many: give 'rate', such as '{}'",
                limit.name,
                rate::text::several(&limit.rates),
            );
            reader.error(owner, message);
            return None;
        }
        let context = limit.map_or(RateContext::UNKNOWN, Definition::context);
        let position = reader.position(owner);
        let rates = rate::read(reader, fields, position, context)?;
        if let (Some(limit), Some(parts), Some(node)) = (limit, parts, fields.get(rate::RATE))
            && parts != rates.len()
        {
            let (name, found) = (&limit.name, rates.len());
            let message = if limit.lacks_rate {
                format!(
                    "{found} rates, but {name} has none, so its overrides have one: give {name} \
                     {found} rates, too"
                )
            } else if parts == 1 {
                format!("{found} rates, but {name} has one, so its overrides must have one")
            } else {
                let own = rate::text::several(&limit.rates);
                format!(
                    "{found} of {parts} rates: {name} has '{own}', so its overrides need {parts}"
                )
            };
            reader.error(node.at, message);
            return None;
        }
        if let Some(limit) = limit
            && let Some(reserve) = &limit.reserve
        {
            for rate in &rates {
                reserve::check_override(reader, &limit.name, reserve, limit.cost, rate, owner);
            }
        }
        Some(rates)
    }

    /// Returns the limit with this name, or reports that it cannot have overrides.
    fn limit(&mut self, reader: &mut Reader<'_, '_>, name: Name<'_>) -> Option<LimitIndex> {
        let index = self.limits.find(reader, name)?;
        let number = self.limits.get(index).id_format.key_part();
        if let Some(why) = number.and_then(KeyPart::why_no_overrides) {
            let message = format!("{} cannot have overrides: {why}", name.text);
            reader.error(name.at, message);
            return None;
        }
        Some(index)
    }

    /// Adds an override. If its `rates` have an error (`None`), only checks the id.
    fn add(
        &mut self,
        reader: &mut Reader<'_, '_>,
        index: LimitIndex,
        written: &IdText<'_>,
        rates: Option<&[Rate]>,
    ) {
        let limit = self.limits.get(index);
        let id = match name_id::parse(written.text, limit.keys()) {
            Ok(id) => id,
            Err(message) => return reader.error(written.at, message),
        };
        let source = id.source();
        if let Some(OverrideId::Prefix(prefix)) = source
            && let family = Address::from(prefix.addr()).family
            && let Some(most) = most_bits(limit.id_format, limit.per_name, family)
            && prefix.prefix_len() > most
        {
            let around = IpNet::new(prefix.addr(), most).unwrap_or(prefix).trunc();
            let right = OverrideId::Prefix(around);
            let right = (id.name()).map_or(right.clone(), |name| right.with_name(name.clone()));
            let message = format!(
                "invalid id '{}': beside a {}, an IPv6 address counts by its /{most}: did you mean \
                 '{right}'?",
                written.text,
                limit.per_name.map_or("name", NameKind::name),
            );
            return reader.error(written.at, message);
        }
        if let (Some(OverrideId::Subscriber(number)), Some(subscribers)) =
            (source, self.subscribers)
            && !subscribers.contains_key(&number)
        {
            let message = format!("invalid id '{number}', no subscriber has this number");
            return reader.error(written.at, message);
        }
        let describe = || format!("id '{}' of {}", written.text, limit.name);
        let is_first = self
            .seen
            .is_first(reader, (index, id.clone()), written.at, describe);
        if let Some(name) = id.name().filter(|_| is_first) {
            self.section.named.push(NamedId {
                limit: index,
                name: name.clone(),
                at: reader.position(written.at),
            });
        }
        if let Some(rates) = rates.filter(|_| is_first) {
            for (part, rate) in rates.iter().enumerate() {
                let of_part = self.section.overrides.entry((index, part)).or_default();
                of_part.push(Override {
                    id: id.clone(),
                    rate: *rate,
                    comment: written.comment.map(ToOwned::to_owned),
                });
            }
        }
    }

    fn into_section(mut self) -> Section {
        for overrides in self.section.overrides.values_mut() {
            overrides.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        }
        self.section
    }
}

/// Reads an item of `ids`: an id, or an id with a comment.
fn id_text<'n>(reader: &mut Reader<'n, '_>, item: &'n Node<'n>) -> Option<IdText<'n>> {
    const EXPECTED: &str = "an id";
    let is_map = matches!(item.value, Value::Mapping(_));
    if !is_map || prefix::colon_at_end(reader, item).is_some() {
        return Some(IdText {
            text: prefix::text(reader, item, EXPECTED)?,
            at: item.at,
            comment: None,
        });
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
    Some(IdText {
        text: reader.text(node, EXPECTED)?,
        at: node.at,
        comment,
    })
}
