//! The fields of limits on open connections: their number, in place of a rate; the queue of waiting clients; and
//! the group of limits that share one count.

use limiter_common::{connection::queue::MOST_TICKETS, limit::Cost};

use super::{
    fields::{self, Field, Given},
    nearest,
    node::Node,
    rate,
    reader::Reader,
};
use crate::policy::{Mode, Queue};

/// The number of connections that may be open at once.
pub(super) const LIMIT: &str = "limit";
pub(super) const QUEUE: &str = "queue";
pub(super) const GROUP: &str = "group";

/// The datapath's counter ends here.
pub(super) const MOST: u64 = 1_000_000;

/// Reads the number of connections that a key may have open.
pub(super) fn number<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<u64> {
    reader.whole(node, LIMIT, 1..=MOST)
}

/// Says why a limit with this cost has no fields of a rate.
pub(super) fn why_no_rate(cost: Cost) -> Option<String> {
    let why = format!("say how many may be open at once, such as '{LIMIT}: 50'");
    never(cost, &why)
}

/// Says why a limit with this cost has no number of connections.
pub(super) fn why_no_number(cost: Cost) -> Option<String> {
    only(cost, &format!("other limits have {}", rate::EXPECTED))
}

/// Says why a limit with this cost has no fields that need packets to spend tokens.
pub(super) fn why_unspent(cost: Cost) -> Option<String> {
    matches!(cost, Cost::Connections | Cost::Handshakes).then(|| {
        format!(
            "is not for cost {}, which no packet spends: leave it out, or give it to a second limit with cost \
             new-connections",
            cost.name()
        )
    })
}

/// Says why a field that is only for limits on connections is misplaced.
pub(super) fn only(cost: Cost, why: &str) -> Option<String> {
    (cost != Cost::Connections).then(|| format!("is only for cost connections: {why}"))
}

/// Says why a field that is not for limits on connections is misplaced.
pub(super) fn never(cost: Cost, why: &str) -> Option<String> {
    (cost == Cost::Connections).then(|| format!("is not for cost connections: {why}"))
}

/// The fields of a queue, with Traffic Server's names.
const QUEUE_FIELDS: &[Field<Queue>] = &[
    Field::unlisted("size", |queue, given| {
        given.whole(&mut queue.size, 0..=MOST_TICKETS);
    }),
    Field::unlisted(fields::MAX_AGE, |queue, given| {
        given.age(&mut queue.max_age_ns);
    }),
];

/// Traffic Server's defaults have no bounds. The client's kernel sets one for the age: Linux sends its last SYN
/// 67 s after the first, so an older ticket has no client.
const DEFAULT_QUEUE: Queue = Queue {
    size: 1000,
    max_age_ns: 70_000_000_000,
};

/// Reads the queue; `None`: clients do not wait.
pub(super) fn read_queue(given: &mut Given<'_, '_, '_>, mode: Mode) -> Option<Queue> {
    let mut queue = DEFAULT_QUEUE;
    let expected = "a map, possibly empty, with 'size' and 'max-age'";
    given.map(expected, QUEUE_FIELDS, &mut queue)?;
    if mode == Mode::Observe {
        let message = "'queue' is not for mode observe, which turns nobody away: leave it out, or \
                       enforce the limit";
        given.reader.error(given.name.at, message);
    }
    // As in Traffic Server, size 0 disables the queue.
    (queue.size != 0).then_some(queue)
}

/// Reads the group's name; `None`: the limit has its own count.
pub(super) fn read_group(given: &mut Given<'_, '_, '_>) -> Option<String> {
    let text = given.text("a group's name")?;
    if !nearest::is_name(text) {
        given.error(format!(
            "invalid group '{text}', {}",
            nearest::expected_name()
        ));
        return None;
    }
    if let Some((queue, _)) = given.fields.find(QUEUE) {
        let message = format!(
            "'{QUEUE}' is not for a limit with a '{GROUP}': nobody can say for which of its limits a slot is free"
        );
        given.reader.error(queue.at, message);
    }
    Some(text.to_owned())
}
