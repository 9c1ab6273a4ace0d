//! The fields of limits on open connections. Their rate is a plain number.

use limiter_common::limit::Cost;

use super::{
    automatic_ban, group,
    node::Node,
    queue,
    rate::{self, automatic},
    reader::{Fields, Reader},
    scope, strategy,
};
use crate::policy::Rate;

/// The number of connections that may be open at once.
pub(super) const LIMIT: &str = "limit";

/// The datapath's counter ends here.
pub(super) const MOST: u64 = 1_000_000;

/// Reads the number of connections that a key may have open, if present. Reports fields that have no
/// meaning beside it.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, fields: &Fields<'n>) -> Option<Rate> {
    let [burst, count, period, rate] = rate::FIELDS;
    let [floor, ceiling] = automatic::BOUNDS;
    let of_rates = [burst, count, period, rate, floor, ceiling];
    for field in of_rates {
        if let Some((name, _)) = fields.find(field) {
            let message = format!(
                "'{field}' is not for cost connections: say how many may be open at once, such as \
                 '{LIMIT}: 50'"
            );
            reader.error(name.at, message);
        }
    }
    scope::refuse(reader, fields);
    fields.get(LIMIT).and_then(|node| number(reader, node))
}

/// Reports fields that need packets to spend tokens (`strategy`, `ban` and `more`), in a limit with another
/// kind of cost.
pub(super) fn refuse_spent(
    reader: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
    cost: Cost,
    more: &[&str],
) {
    let cost = cost.name();
    for field in [strategy::FIELD, automatic_ban::FIELD].iter().chain(more) {
        if let Some((name, _)) = fields.find(field) {
            let message = format!(
                "'{field}' is not for cost {cost}, which no packet spends: leave it out, or give it to \
                 a second limit with cost new-connections"
            );
            reader.error(name.at, message);
        }
    }
}

/// Reports these fields in a limit with another cost, or in an override of such a limit. Returns whether the
/// field `limit` is present.
pub(super) fn refuse(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) -> bool {
    if let Some((name, _)) = fields.find(queue::FIELD) {
        let message = format!(
            "'{}' is only for cost connections: nobody can wait for another limit, whose budget comes \
             back by itself",
            queue::FIELD
        );
        reader.error(name.at, message);
    }
    group::refuse(reader, fields);
    let Some((name, _)) = fields.find(LIMIT) else {
        return false;
    };
    let message = format!(
        "'{LIMIT}' is only for cost connections: other limits have {}",
        rate::EXPECTED
    );
    reader.error(name.at, message);
    true
}

fn number<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Rate> {
    let most = reader.whole(node, LIMIT, 1..=MOST)?;
    Some(Rate::of_connections(most))
}
