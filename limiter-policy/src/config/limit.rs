//! One limit of the section `limits`: built in, or defined by the file.

use std::ops::Deref;

use limiter_common::{
    answer::Answer,
    limit::{BUILT_IN, BuiltIn, Cost, IdFormat, NameKind},
    strategy::Strategy,
};

use super::{
    automatic_ban, boulder, connections, contradictions, deny,
    diagnostics::FilePosition,
    flat_metrics, group,
    limit_id::{self, ID, LimitKeys},
    list_names::{self, ListNames},
    matching, nearest, new_names,
    node::Node,
    otherwise, queue,
    rate::{self, RateContext, automatic},
    reader::{Fields, Name, Reader},
    reserve, scope, spelling, strategy,
};
use crate::policy::{self, AutomaticBan, Limit, Match, Mode, Rate};

const MODE: &str = "mode";
const COST: &str = "cost";
const MATCH: &str = "match";
pub(super) const EXCLUDE: &str = "exclude";
const BLOCK: &str = "block";
pub(super) const IP_REP: &str = "ip-rep";
pub(super) const METRICS: &str = "metrics";

const DNS_PORT: u16 = 53;

/// The port of limits by server name, unless they match other ports.
pub(super) const HTTPS_PORT: u16 = 443;

/// The fields that a built-in limit already defines.
const DEFINITION: [&str; 4] = [ID, COST, MATCH, otherwise::FIELD];

/// A limit of the file, with the facts that later checks need. It derefs to the limit, which lacks its interned id, its
/// lists and overrides, and of several rates all but the first.
pub(super) struct Definition {
    pub(super) limit: Limit,
    /// The position of its first mention.
    pub(super) position: FilePosition,
    /// The positions of fields that later checks name.
    pub(super) fields: FieldPositions,
    pub(super) has_valid_strategy: bool,
    /// The rates of keys without an override, each a limit of its own; empty: none, or invalid.
    pub(super) rates: Vec<Rate>,
    /// Whether all fields of a rate are absent.
    pub(super) lacks_rate: bool,
    /// The lists with packets that it does not count.
    pub(super) exclude_lists: ListNames,
    /// The lists with packets that it drops.
    pub(super) block_lists: ListNames,
    /// Whether it has no effect without overrides.
    pub(super) needs_overrides: bool,
}

/// The positions of a limit's fields; `None`: absent or invalid.
#[derive(Default)]
pub(super) struct FieldPositions {
    pub(super) ban: Option<FilePosition>,
    pub(super) group: Option<FilePosition>,
    pub(super) ip_rep: Option<FilePosition>,
    pub(super) metrics: Option<FilePosition>,
    /// `scope: fleet`; `None`: each host has its own budget.
    pub(super) fleet: Option<FilePosition>,
}

impl Deref for Definition {
    type Target = Limit;

    fn deref(&self) -> &Limit {
        &self.limit
    }
}

impl Definition {
    /// Wraps a limit that has its rates, without the positions of fields.
    pub(super) fn new(limit: Limit, position: FilePosition, rates: Vec<Rate>) -> Self {
        Self {
            limit,
            position,
            fields: FieldPositions::default(),
            has_valid_strategy: true,
            lacks_rate: rates.is_empty(),
            rates,
            exclude_lists: ListNames::default(),
            block_lists: ListNames::default(),
            needs_overrides: false,
        }
    }

    /// Returns a built-in limit that occurs only in overrides.
    pub(super) fn of(limit: &BuiltIn, position: FilePosition) -> Self {
        Self {
            needs_overrides: true,
            ..Self::new(Limit::of_built_in(limit, None), position, Vec::new())
        }
    }

    pub(super) fn keys(&self) -> LimitKeys {
        LimitKeys {
            format: self.id_format,
            per_name: self.per_name,
        }
    }

    /// Returns whether it tells registered domains apart.
    pub(super) fn is_of_domains(&self) -> bool {
        self.name_kind() == Some(NameKind::Domain)
    }

    /// Returns the number of its rates, each a limit of its own; `None`: unknown.
    pub(super) fn parts(&self) -> Option<usize> {
        match self.rates.len() {
            0 if self.lacks_rate => Some(1),
            0 => None,
            parts => Some(parts),
        }
    }

    /// Returns whether it answers the senders of dropped packets.
    pub(super) fn answers(&self) -> bool {
        self.deny.is_some() && self.mode == Mode::Enforce
    }

    pub(super) fn makes_syn_cookies(&self) -> bool {
        self.answers() && self.deny.is_some_and(|deny| deny.sends(Answer::SynCookie))
    }

    /// Returns the names of the limits that its rates make.
    pub(super) fn part_names(&self) -> impl Iterator<Item = String> {
        let parts = self.parts().unwrap_or(1);
        (0..parts).map(|part| policy::part_name(&self.name, part))
    }

    /// Returns the constraints on its rates and on the rates of its overrides.
    pub(super) fn context(&self) -> RateContext {
        RateContext {
            cost: Some(self.cost),
            strategy: self.has_valid_strategy.then_some(self.strategy),
        }
    }
}

pub(super) fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|limit| limit.name == name)
}

fn known_fields() -> [&'static str; 21] {
    let [burst, count, period, rate] = rate::FIELDS;
    let [floor, ceiling] = automatic::BOUNDS;
    [
        burst,
        count,
        period,
        rate,
        floor,
        ceiling,
        scope::FIELD,
        strategy::FIELD,
        MODE,
        limit_id::PREFIX_LENGTH,
        EXCLUDE,
        BLOCK,
        reserve::FIELD,
        deny::FIELD,
        deny::SLIP,
        automatic_ban::FIELD,
        connections::LIMIT,
        queue::FIELD,
        group::FIELD,
        IP_REP,
        METRICS,
    ]
}

pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    name: Name<'n>,
    body: &'n Node<'n>,
) -> Option<Definition> {
    let built_in = built_in(name.text);
    let known = known_fields();
    let fields = match built_in {
        Some(_) => reader.fields_and(body, rate::EXPECTED, &known, &DEFINITION),
        None => reader.fields(body, rate::EXPECTED, &[&known[..], &DEFINITION].concat()),
    };
    let (id, cost) = keys_and_cost(reader, name, built_in, fields.as_ref());
    let fields = fields?;
    let id = limit_id::read_prefix_length(reader, &fields, id);
    let matching = match built_in {
        Some(_) => Match::default(),
        None => read_match(reader, &fields, id, cost),
    };
    check_cost(reader, &fields, id, cost);
    let mode = fields.get(MODE).map_or(Some(Mode::default()), |node| {
        reader.choice(node, MODE, Mode::ALL.map(|mode| (mode.name(), mode)))
    });
    let exclude = list_names::read_field(reader, &fields, EXCLUDE, Some(name.text));
    let block = list_names::read_field(reader, &fields, BLOCK, Some(name.text));
    let metrics = fields.get(METRICS);
    let metrics = metrics.and_then(|node| flat_metrics::read(reader, name, node));
    if let Some(id) = id
        && cost == Some(Cost::NewNames)
    {
        new_names::check_id(reader, &fields, id);
    }
    let common = CommonFields {
        id,
        cost,
        matching,
        mode,
    };
    let definition = match cost {
        Some(Cost::Connections) => of_connections(reader, name, &fields, common),
        _ => of_tokens(reader, name, &fields, common),
    };
    let (metrics, of_metrics) = metrics.unzip();
    let definition = definition?;
    Some(Definition {
        fields: FieldPositions {
            metrics: of_metrics,
            ..definition.fields
        },
        limit: Limit {
            metrics,
            ..definition.limit
        },
        needs_overrides: definition.lacks_rate
            && fields.get(BLOCK).is_none()
            && mode.is_some_and(|mode| mode != Mode::Off),
        exclude_lists: exclude,
        block_lists: block,
        ..definition
    })
}

/// The fields that limits of all costs have, and on which others depend. `None`: invalid.
struct CommonFields {
    id: Option<LimitKeys>,
    cost: Option<Cost>,
    matching: Match,
    mode: Option<Mode>,
}

impl CommonFields {
    fn id_format(&self) -> Option<IdFormat> {
        self.id.map(|id| id.format)
    }

    const fn counted(&self) -> deny::CountedPackets<'_> {
        deny::CountedPackets {
            matching: &self.matching,
            id_format: match self.id {
                Some(id) => Some(id.format),
                None => None,
            },
            cost: self.cost,
        }
    }

    /// Returns a limit with these fields; `None`: one of them is invalid.
    fn into_limit(self, name: &str) -> Option<Limit> {
        let id = self.id?;
        Some(Limit {
            per_name: id.per_name,
            matching: self.matching,
            mode: self.mode.unwrap_or_default(),
            ..Limit::with_name(name, id.format, self.cost?)
        })
    }
}

/// Reads the rest of a limit that charges tokens.
fn of_tokens<'n>(
    reader: &mut Reader<'n, '_>,
    name: Name<'n>,
    fields: &Fields<'n>,
    common: CommonFields,
) -> Option<Definition> {
    let cost = common.cost;
    if cost.is_some() {
        connections::refuse(reader, fields);
    }
    if cost == Some(Cost::Handshakes) {
        connections::refuse_spent(reader, fields, Cost::Handshakes, &[IP_REP]);
    }
    let ban = read_ban(reader, fields, &common);
    let (ban, of_ban) = ban.unzip();
    let strategy = strategy::read(reader, fields, cost);
    let context = RateContext { cost, strategy };
    let kind = automatic::Kind {
        id_format: common.id_format(),
        context,
        mode: common.mode,
    };
    let (rates, ceiling) = read_rates(reader, name, fields, kind);
    let fleet = scope::read(reader, fields, kind);
    let reserve = reserve::read(reader, fields, context, &rates);
    if ceiling.is_some() {
        reserve::refuse_tokens(reader, fields, reserve.as_ref(), "count: auto");
    }
    if fleet.is_some() {
        reserve::refuse_tokens(reader, fields, reserve.as_ref(), "scope: fleet");
    }
    let deny = deny::read(reader, fields, common.counted());
    let (ip_rep, of_ip_rep) = read_sieve(reader, fields).unzip();
    let limit = Limit {
        strategy: strategy.unwrap_or_default(),
        reserve,
        deny,
        ban,
        ceiling,
        ip_rep,
        ..common.into_limit(name.text)?
    };
    Some(Definition {
        fields: FieldPositions {
            ban: of_ban,
            ip_rep: of_ip_rep,
            fleet,
            ..FieldPositions::default()
        },
        has_valid_strategy: strategy.is_some(),
        lacks_rate: rate::is_absent(fields),
        ..Definition::new(limit, reader.position(name.at), rates)
    })
}

/// Reads the automatic bans of a limit, with the field's position.
fn read_ban<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    common: &CommonFields,
) -> Option<(AutomaticBan, FilePosition)> {
    let (name, node) = fields.find(automatic_ban::FIELD)?;
    let ban = automatic_ban::read(reader, name, node, common.id_format())?;
    automatic_ban::check_counted(reader, name, &ban, &common.matching.standing);
    Some((ban, reader.position(name.at)))
}

/// Returns its keys and its cost: fixed for a built-in limit, otherwise from the file.
fn keys_and_cost<'n>(
    reader: &mut Reader<'n, '_>,
    name: Name<'n>,
    built_in: Option<&BuiltIn>,
    fields: Option<&Fields<'n>>,
) -> (Option<LimitKeys>, Option<Cost>) {
    match (built_in, fields) {
        (Some(limit), Some(fields)) => {
            refuse_definition(reader, limit, fields);
            (Some(LimitKeys::of(limit.id_format)), Some(limit.cost))
        }
        (None, Some(fields)) if !(fields.is_missing(ID) && fields.is_missing(COST)) => {
            read_definition(reader, name, fields)
        }
        (Some(_), None) => (None, None),
        (None, _) => {
            unknown(reader, name);
            (None, None)
        }
    }
}

fn read_match<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    id: Option<LimitKeys>,
    cost: Option<Cost>,
) -> Match {
    let matching = fields.get(MATCH);
    let matching = matching.map(|node| matching::read(reader, node, id, cost));
    let matching = Match {
        otherwise: otherwise::read(reader, fields),
        ..matching.unwrap_or_default()
    };
    if contradictions::counts_by_question(&matching, id, cost) {
        with_service(matching, &[Match::UDP], DNS_PORT)
    } else if contradictions::counts_by_server_name(&matching, id.map(|id| id.format)) {
        // QUIC flows are easy to forge. A flood would spend the budget of the name's TCP connections, so UDP
        // must be asked for.
        let protocols = match &matching.protocols[..] {
            [] => vec![Match::TCP],
            named => named.to_vec(),
        };
        with_service(matching, &protocols, HTTPS_PORT)
    } else {
        matching
    }
}

/// Restricts a match on DNS questions or server names to the given protocols, and to the usual port unless it
/// names ports.
fn with_service(mut matching: Match, protocols: &[u8], port: u16) -> Match {
    matching.protocols = protocols.to_vec();
    if matching.destination_ports.is_empty() {
        matching.destination_ports = vec![port..=port];
    }
    matching
}

/// Reports an id by DNS question or server name if the cost's events have none.
fn check_cost<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    id: Option<LimitKeys>,
    cost: Option<Cost>,
) {
    let (Some(node), Some(id), Some(cost)) = (fields.get(ID), id, cost) else {
        return;
    };
    let message = match id.name_kind() {
        Some(name_kind) if !matches!(cost, Cost::Packets | Cost::Bytes | Cost::NewNames) => {
            format!(
                "id {} is of packets with a DNS question, which cost {} does not count: set '{COST}' to packets, \
             bytes or new-names",
                name_kind.name(),
                cost.name()
            )
        }
        None if id.format == IdFormat::ServerName && contradictions::precedes_server_name(cost) => {
            contradictions::no_server_name_yet(cost)
        }
        None if id.format == IdFormat::ServerName && cost == Cost::NewNames => format!(
            "id {} is of connections, which cost {} does not count: set '{COST}' to packets, bytes or connections",
            id.format.name(),
            cost.name()
        ),
        _ => return,
    };
    reader.error(node.at, message);
}

/// Reads the rest of a limit on connections.
fn of_connections<'n>(
    reader: &mut Reader<'n, '_>,
    name: Name<'n>,
    fields: &Fields<'n>,
    common: CommonFields,
) -> Option<Definition> {
    connections::refuse_spent(reader, fields, Cost::Connections, &[]);
    let rates: Vec<_> = connections::read(reader, fields).into_iter().collect();
    let (group, of_group) = group::read(reader, fields).unzip();
    if let Some(position) = of_group
        && contradictions::counts_by_server_name(&common.matching, common.id_format())
    {
        let message = "'group' is not for limits by server name: their connections begin to count later than \
                       others";
        reader.problems().report_at(position, message.to_owned());
    }
    let context = RateContext {
        cost: common.cost,
        strategy: Some(Strategy::default()),
    };
    let queue = queue::read(reader, fields, common.mode.unwrap_or_default());
    let reserve = reserve::read(reader, fields, context, &rates);
    let deny = deny::read(reader, fields, common.counted());
    let (ip_rep, of_ip_rep) = read_sieve(reader, fields).unzip();
    let limit = Limit {
        reserve,
        deny,
        queue,
        group,
        ip_rep,
        ..common.into_limit(name.text)?
    };
    Some(Definition {
        fields: FieldPositions {
            group: of_group,
            ip_rep: of_ip_rep,
            ..FieldPositions::default()
        },
        lacks_rate: fields.is_missing(connections::LIMIT),
        ..Definition::new(limit, reader.position(name.at), rates)
    })
}

/// Reads the name of the sieve that scores its sources, with its position.
pub(super) fn read_sieve<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
) -> Option<(String, FilePosition)> {
    let node = fields.get(IP_REP)?;
    let name = reader.text(node, "a sieve's name")?.to_owned();
    Some((name, reader.position(node.at)))
}

/// Reads the rates of keys without an override (none if invalid), and the ceiling of an automatic rate.
fn read_rates<'n>(
    reader: &mut Reader<'n, '_>,
    limit: Name<'n>,
    fields: &Fields<'n>,
    kind: automatic::Kind,
) -> (Vec<Rate>, Option<u64>) {
    if automatic::is_automatic(reader, fields) {
        return match automatic::read(reader, fields, kind) {
            Some(automatic) => (vec![automatic.floor], Some(automatic.ceiling)),
            None => (Vec::new(), None),
        };
    }
    let has_rate = !rate::is_absent(fields);
    let rates = has_rate.then(|| rate::read_distinct(reader, fields, limit.at, kind.context));
    (rates.flatten().unwrap_or_default(), None)
}

/// Reports an unknown limit, with the nearest known name.
fn unknown(reader: &mut Reader<'_, '_>, name: Name<'_>) {
    if let Some(message) = boulder::undefined(name.text) {
        reader.error(name.at, message);
        return;
    }
    let known = BUILT_IN.map(|limit| limit.name);
    let message = match nearest::nearest(name.text, &known) {
        Some(near) => format!(
            "unknown limit '{}', did you mean '{near}'? (A limit of your own needs '{ID}' and \
             '{COST}')",
            name.text
        ),
        None => format!(
            "unknown limit '{}': a limit of your own needs '{ID}' and '{COST}'; the built-in \
             limits are {}",
            name.text,
            known.join(", ")
        ),
    };
    reader.error(name.at, message);
}

/// Reports fields that would redefine a built-in limit.
fn refuse_definition(reader: &mut Reader<'_, '_>, limit: &BuiltIn, fields: &Fields<'_>) {
    for field in DEFINITION {
        if let Some(node) = fields.get(field) {
            reader.error(
                node.at,
                format!(
                    "'{field}' is not for {}, a built-in limit with id {} and cost {}: use another \
                     name",
                    limit.name,
                    limit.id_format.name(),
                    limit.cost.name()
                ),
            );
        }
    }
}

/// Reads the fields that define a new limit.
fn read_definition<'n>(
    reader: &mut Reader<'n, '_>,
    name: Name<'n>,
    fields: &Fields<'n>,
) -> (Option<LimitKeys>, Option<Cost>) {
    check_name(reader, name);
    for field in [ID, COST] {
        if fields.is_missing(field) {
            reader.error(name.at, format!("missing field '{field}'"));
        }
    }
    let id = fields.get(ID).and_then(|node| limit_id::read(reader, node));
    let cost = fields
        .get(COST)
        .and_then(|node| reader.choice(node, COST, Cost::ALL.map(|cost| (cost.name(), cost))));
    (id, cost)
}

fn check_name(reader: &mut Reader<'_, '_>, name: Name<'_>) {
    let same = BUILT_IN
        .iter()
        .find(|limit| limit.name.eq_ignore_ascii_case(name.text));
    let why = if !spelling::is_name(name.text) {
        spelling::expected_name()
    } else if let Some(limit) = same {
        format!(
            "which differs from a built-in name only in case, did you mean '{}'?",
            limit.name
        )
    } else {
        return;
    };
    reader.error(name.at, format!("invalid name '{}', {why}", name.text));
}
