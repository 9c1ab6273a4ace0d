//! Open connections: per limit, per key, and the clients waiting in line.

use limiter_protocol::{ConnectionsStatus, KeyStatus, LimitStatus};
use limiter_report::{
    numbers::{Subject, words},
    render::{count, duration},
};
use maud::{Markup, html};

use super::{
    super::snapshot::{LimitRow, Snapshot},
    parts::{Column, Kind, NONE, source, table, text},
};

/// Returns the connections' part of the section on limits.
pub(super) fn part(status: &ConnectionsStatus, snapshot: &Snapshot) -> Markup {
    let columns = [
        Column("Limit", Kind::Text),
        Column("Waiting", Kind::Number),
        Column("Queued", Kind::Number),
        Column("Resumed", Kind::Number),
        Column("Waited on average", Kind::Number),
        Column("Expired", Kind::Number),
        Column("Rejected", Kind::Number),
    ];
    let queues: Vec<_> = snapshot.limits.iter().filter_map(queue).collect();
    let open_columns = [
        Column("Limit", Kind::Text),
        Column("Open", Kind::Number),
        Column("Each key at most", Kind::Number),
    ];
    let open: Vec<_> = snapshot.limits.iter().filter_map(open).collect();
    let key_columns = [
        Column("Key", Kind::Text),
        Column("Limit", Kind::Text),
        Column("Open", Kind::Number),
        Column("At most", Kind::Number),
        Column("Waiting", Kind::Number),
    ];
    let keys: Vec<_> = snapshot.keys.iter().map(key).collect();
    html! {
        h3 { "Connections" }
        p { (words(&snapshot.status, Subject::Connections)) "." }
        @if let Some(error) = &status.error {
            p.warning { "Counted once a second: " (error) }
        }
        @if !open.is_empty() {
            (table("Open connections by limit", &open_columns, &open))
        }
        @if !keys.is_empty() {
            (table("Keys with the most open connections, by their share of their limit", &key_columns, &keys))
        }
        @if !queues.is_empty() {
            (table("Clients that wait in line", &columns, &queues))
        }
    }
}

/// Returns a row with a limit's open connections; `None`: it counts none.
fn open(limit: &LimitRow) -> Option<Vec<Markup>> {
    let LimitStatus {
        open, connections, ..
    } = &limit.status;
    Some(vec![
        text(&limit.name),
        text(count((*open)?)),
        text(connections.map_or_else(|| NONE.to_owned(), count)),
    ])
}

/// Returns a row with a key's open connections, and the clients waiting for them to end.
fn key(key: &KeyStatus) -> Vec<Markup> {
    vec![
        source(&key.id),
        text(&key.limit),
        text(count(key.open)),
        text(count(key.most)),
        text(key.waiting.map_or_else(|| NONE.to_owned(), count)),
    ]
}

/// Returns a row with a limit's queue; `None`: it has none.
fn queue(limit: &LimitRow) -> Option<Vec<Markup>> {
    let queue = limit.status.queue.as_ref()?;
    let waited = queue.waited_ns.checked_div(queue.resumed);
    Some(vec![
        text(&limit.name),
        text(count(queue.waiting)),
        text(count(queue.queued)),
        text(count(queue.resumed)),
        text(waited.map_or_else(|| NONE.to_owned(), duration)),
        text(count(queue.expired)),
        text(count(queue.rejected)),
    ])
}
