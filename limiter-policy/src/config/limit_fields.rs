//! The fields of a limit, one entry for each, in the order in which they are read: an entry may depend on those
//! before it.
//!
//! A new field is an entry here and a field of [`Limit`](crate::policy::Limit). The test `documents` compares
//! the manual with the entries.

use limiter_common::limit::{Cost, IdFormat};

use super::{
    answers, automatic_ban, connections, contradictions,
    fields::{BOOLEANS, Field, Given},
    limit::{self, Definition},
    limit_id, list_names, matching,
    rate::{self, automatic},
    reader::{Fields, Reader},
    reserve, scope, strategy,
};
use crate::policy::{FlatMetrics, Match, Mode, Rate};

pub(super) const COST: &str = "cost";
pub(super) const EXCLUDE: &str = "exclude";
const BLOCK: &str = "block";
pub(super) const OTHERWISE: &str = "otherwise";
pub(super) const IP_REP: &str = "ip-rep";
pub(super) const METRICS: &str = "metrics";

const DNS_PORT: u16 = 53;

/// The port of limits by server name, unless they match other ports.
pub(super) const HTTPS_PORT: u16 = 443;

type LimitField = Field<Definition>;

pub(super) const FIELDS: &[LimitField] = &[
    LimitField::new(
        limit_id::ID,
        "[the bucket's key](#built-in-limits) (the name must be built in)",
        |limit, given| {
            if let Some(keys) = limit_id::read(given.reader, given.node) {
                limit.set_keys(keys);
                limit.unknown.keys = false;
            }
        },
    )
    .unless(is_built_in),
    LimitField::new(
        COST,
        "the unit: `packets`, `bytes`, `new-connections`, [`connections`](connections.md), \
         [`handshakes`](connections.md#handshakes-completed) or [`new-names`](dns-names.md#new-names) (the name \
         must be built in)",
        |limit, given| {
            let known = Cost::ALL.map(|cost| (cost.name(), cost));
            if let Some(cost) = given.reader.choice(given.node, COST, known) {
                limit.cost = cost;
                limit.unknown.cost = false;
            }
        },
    )
    .unless(is_built_in)
    .then(check_keys),
    LimitField::new(
        limit_id::PREFIX_LENGTH,
        "of ranges: 8 to 32 for IPv4 (24), 16 to 128 for IPv6 (48)",
        |limit, given| {
            let keys = limit.keys();
            limit.set_keys(limit_id::with_prefix_length(given, keys));
        },
    )
    .unless(|limit| limit_id::why_no_prefix_length(limit.known_id_format()?)),
    LimitField::new(
        "match",
        "the packets that it counts (all)",
        |limit, given| {
            let (keys, cost) = (limit.known_keys(), limit.known_cost());
            limit.matching = matching::read(given, keys, cost);
        },
    )
    .unless(is_built_in),
    LimitField::new(
        OTHERWISE,
        "`true`: [count only packets that no other limit counts](connections.md#all-other-connections) with this \
         `id` and `cost`; sources excluded from the others, too (`false`)",
        |limit, given| given.choice(&mut limit.matching.otherwise, BOOLEANS),
    )
    .unless(is_built_in)
    .then(|limit, _, _| restrict_to_service(limit)),
    LimitField::new(
        "mode",
        "`enforce`, `observe` (counts drops, passes all) or `off`",
        |limit, given| {
            let known = Mode::ALL.map(|mode| (mode.name(), mode));
            // An invalid mode must cause no further errors.
            limit.mode = Mode::Off;
            given.choice(&mut limit.mode, known);
        },
    ),
    LimitField::new(
        strategy::FIELD,
        "[`gcra`, `fixed-window`, `moving-window` or `sliding-window-counter`](strategies.md#how-to-choose)",
        |limit, given| {
            let strategy = strategy::read(given.reader, given.node, limit.known_cost());
            limit.strategy = strategy.unwrap_or_default();
            limit.unknown.strategy = strategy.is_none();
        },
    )
    .unless(|limit| connections::why_unspent(limit.known_cost()?)),
    LimitField::new(
        connections::LIMIT,
        "with `cost: connections`: [how many may be open at once](connections.md), 1 to 1000000",
        |limit, given| {
            let number = connections::number(given.reader, given.node);
            limit.rates.extend(number.map(Rate::of_connections));
        },
    )
    .unless(|limit| connections::why_no_number(limit.known_cost()?)),
    rate_field(
        rate::BURST,
        "the tokens of a full bucket, for `strategy: gcra`",
    ),
    rate_field(
        rate::COUNT,
        "the tokens that come back in each `period`; without a rate, only keys with an override are limited",
    ),
    rate_field(rate::PERIOD, "a duration"),
    rate_field(
        rate::RATE,
        "`count` and `period` as text, such as `10/minute`, or several rates",
    ),
    rate_field(
        automatic::FLOOR,
        "the lowest rate of [`count: auto`](#count-auto), 100 to 10000000 tokens a second (10000)",
    ),
    rate_field(
        automatic::CEILING,
        "its highest rate, likewise (1000000)",
    )
    .then(read_rates),
    LimitField::new(
        scope::FIELD,
        "`host`, or `fleet`: [each key has one budget on all nodes](fleet.md#shared-limits)",
        |limit, given| {
            let kind = automatic_kind(limit);
            limit.fields.fleet = scope::read(given, kind);
        },
    )
    .unless(|limit| {
        let why = "connections that are open cannot be lent";
        connections::never(limit.known_cost()?, why)
    }),
    LimitField::new(
        reserve::FIELD,
        "tokens that sources must leave in its buckets",
        read_reserve,
    )
    .unless(|limit| reserve::why_misplaced(limit.known_strategy()?)),
    LimitField::part(answers::DENY, "the answer to refused packets (`drop`)"),
    LimitField::part(
        answers::SLIP,
        "of how many truncated answers one is sent, 1 to 10 (1)",
    )
    .then(|limit, reader, fields| {
        let counted = answers::CountedPackets {
            matching: &limit.matching,
            id_format: limit.known_id_format(),
            cost: limit.known_cost(),
        };
        limit.deny = answers::read_deny(reader, fields, counted);
    }),
    LimitField::new(
        connections::QUEUE,
        "with `cost: connections`: [a waiting line](connections.md#waiting-in-line), a map with `size`, 0 to 32768 \
         (1000; 0: none), and `max-age`, a duration or seconds (`70s`; 0: for ever)",
        |limit, given| limit.queue = connections::read_queue(given, limit.mode),
    )
    .unless(|limit| {
        let why = "nobody can wait for another limit, whose budget comes back by itself";
        connections::only(limit.known_cost()?, why)
    }),
    LimitField::new(
        connections::GROUP,
        "with `cost: connections`: a name; [its limits share a count](connections.md#limits-that-share-a-count)",
        read_group,
    )
    .unless(|limit| {
        let why = "give one limit all that another cost is to count together";
        connections::only(limit.known_cost()?, why)
    }),
    LimitField::new(
        automatic_ban::FIELD,
        "when and how long it bans a source that it drops (never)",
        |limit, given| {
            let counted = &limit.matching.standing;
            limit.ban = automatic_ban::read(given, limit.known_id_format(), counted);
            limit.fields.ban = limit.ban.map(|_| given.position());
        },
    )
    .unless(|limit| {
        let unspent = limit.known_cost().and_then(connections::why_unspent);
        unspent.or_else(|| automatic_ban::why_shared(limit.known_id_format()?))
    }),
    LimitField::new(
        EXCLUDE,
        "lists or addresses of packets that it does not count",
        |limit, given| limit.exclude_lists = list_names::read(given, Some(&limit.limit.name)),
    ),
    LimitField::new(
        BLOCK,
        "lists or addresses of packets that it drops",
        |limit, given| {
            limit.block_lists = list_names::read(given, Some(&limit.limit.name));
            limit.blocks = true;
        },
    ),
    LimitField::new(
        IP_REP,
        "the sieve that scores the sources of these packets",
        read_sieve,
    )
    .unless(|limit| match limit.known_cost()? {
        cost @ Cost::Handshakes => connections::why_unspent(cost),
        _ => None,
    }),
    LimitField::new(METRICS, "map: `prefix`, `tag`", read_metrics),
];

/// A field of the rate, which is read as a whole after the last of them.
const fn rate_field(name: &'static str, manual: &'static str) -> LimitField {
    LimitField::part(name, manual).unless(|limit| connections::why_no_rate(limit.known_cost()?))
}

/// Says why a built-in limit cannot be defined again.
fn is_built_in(limit: &Definition) -> Option<String> {
    let built_in = limit::built_in(&limit.name)?;
    Some(format!(
        "is not for {}, a built-in limit with id {} and cost {}: use another name",
        built_in.name,
        built_in.id_format.name(),
        built_in.cost.name()
    ))
}

/// Reports an id by DNS question or server name if the cost's events have none.
fn check_keys<'n>(limit: &mut Definition, reader: &mut Reader<'n, '_>, fields: &Fields<'n>) {
    let given = (
        fields.get(limit_id::ID),
        limit.known_keys(),
        limit.known_cost(),
    );
    let (Some(node), Some(id), Some(cost)) = given else {
        return;
    };
    if cost == Cost::NewNames {
        limit_id::check_new_names(reader, node, id);
    }
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

/// Restricts a match on DNS questions or server names to their protocols, and to the usual port unless it names
/// ports.
fn restrict_to_service(limit: &mut Definition) {
    let (keys, cost) = (limit.known_keys(), limit.known_cost());
    let id_format = limit.known_id_format();
    let matching = &mut limit.matching;
    let port = if contradictions::counts_by_question(matching, keys, cost) {
        matching.protocols = vec![Match::UDP];
        DNS_PORT
    } else if contradictions::counts_by_server_name(matching, id_format) {
        // QUIC flows are easy to forge. A flood would spend the budget of the name's TCP connections, so UDP
        // must be asked for.
        if matching.protocols.is_empty() {
            matching.protocols = vec![Match::TCP];
        }
        HTTPS_PORT
    } else {
        return;
    };
    if matching.destination_ports.is_empty() {
        matching.destination_ports = vec![port..=port];
    }
}

/// Reads the rates of keys without an override (none if invalid), and the ceiling of an automatic rate.
fn read_rates<'n>(limit: &mut Definition, reader: &mut Reader<'n, '_>, fields: &Fields<'n>) {
    if limit.known_cost() == Some(Cost::Connections) {
        limit.lacks_rate = fields.is_missing(connections::LIMIT);
        return;
    }
    limit.lacks_rate = rate::is_absent(fields);
    if automatic::is_automatic(reader, fields) {
        let bounds = automatic::read(reader, fields, automatic_kind(limit));
        limit.rates = bounds.iter().map(|bounds| bounds.floor).collect();
        limit.ceiling = bounds.map(|bounds| bounds.ceiling);
    } else if !limit.lacks_rate {
        let rates = rate::read_distinct(reader, fields, limit.position, limit.context());
        limit.rates = rates.unwrap_or_default();
    }
}

fn automatic_kind(limit: &Definition) -> automatic::Kind {
    automatic::Kind {
        id_format: limit.known_id_format(),
        context: limit.context(),
        mode: limit.mode,
    }
}

fn read_reserve(limit: &mut Definition, given: &mut Given<'_, '_, '_>) {
    limit.reserve = reserve::read(given, limit.known_cost(), &limit.rates);
    for (changes, beside) in [
        (limit.ceiling.is_some(), "count: auto"),
        (limit.fields.fleet.is_some(), "scope: fleet"),
    ] {
        if changes {
            reserve::refuse_tokens(given, limit.reserve.as_ref(), beside);
        }
    }
}

fn read_group(limit: &mut Definition, given: &mut Given<'_, '_, '_>) {
    limit.group = connections::read_group(given);
    limit.fields.group = limit.group.as_ref().map(|_| given.position());
    if limit.group.is_some()
        && contradictions::counts_by_server_name(&limit.matching, limit.known_id_format())
    {
        let message = "'group' is not for limits by server name: their connections begin to count later than \
                       others";
        given.reader.error(given.name.at, message);
    }
}

/// Reads the name of the sieve that scores its sources.
pub(super) fn read_sieve(limit: &mut Definition, given: &mut Given<'_, '_, '_>) {
    limit.ip_rep = given.text("a sieve's name").map(ToOwned::to_owned);
    limit.fields.ip_rep = Some(given.reader.position(given.node.at));
}

/// As in Traffic Server.
const DEFAULT_PREFIX: &str = "plugin.rate_limiter";

/// The longest prefix or tag in bytes: the maximum for a domain name.
const LONGEST_PART: usize = 253;

/// The parts of a limit's metrics' names in Traffic Server.
pub(super) const METRICS_FIELDS: &[Field<FlatMetrics>] = &[
    Field::new(
        "prefix",
        "1 to 253 letters, digits and signs, no blanks (`plugin.rate_limiter`)",
        |metrics, given| read_part(&mut metrics.prefix, given),
    ),
    Field::new("tag", "likewise (the limit's name)", |metrics, given| {
        read_part(&mut metrics.tag, given);
    }),
];

/// Reads the parts of a limit's metrics' names.
pub(super) fn read_metrics(limit: &mut Definition, given: &mut Given<'_, '_, '_>) {
    let expected = "a map, possibly empty, with 'prefix' and 'tag'";
    let mut metrics = FlatMetrics {
        prefix: DEFAULT_PREFIX.to_owned(),
        tag: limit.name.clone(),
    };
    if given.map(expected, METRICS_FIELDS, &mut metrics).is_some() {
        limit.metrics = Some(metrics);
        limit.fields.metrics = Some(given.reader.position(given.node.at));
    }
}

fn read_part(part: &mut String, given: &mut Given<'_, '_, '_>) {
    let Some(text) = given.text("a text") else {
        return;
    };
    let is_right = (1..=LONGEST_PART).contains(&text.len())
        && text.chars().all(|character| character.is_ascii_graphic())
        && !text.contains(['"', '\\']);
    if is_right {
        text.clone_into(part);
    } else {
        given.error(format!(
            "invalid {} '{text}', expected 1 to {LONGEST_PART} printable ASCII characters, without \
             spaces, '\"' and '\\'",
            given.name.text
        ));
    }
}
