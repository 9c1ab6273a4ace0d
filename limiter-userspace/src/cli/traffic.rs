//! Packets by limit, as a table for the live limiter and for replays.

use limiter_common::{counters::LimitTraffic, strategy::Strategy};
use limiter_policy::policy::Mode;

use limiter_report::render::{count, table_without};

pub(super) struct LimitRow {
    pub(super) name: String,
    /// The name of its [`Strategy`].
    pub(super) strategy: String,
    pub(super) mode: Mode,
    pub(super) traffic: LimitTraffic,
}

/// Lays out the table. Strategies are shown only if a limit does not use the default; modes and would-be drops
/// only if a limit does less than enforce.
pub(super) fn limits_table(rows: &[LimitRow]) -> String {
    const STRATEGY: usize = 1;
    const MODE: usize = 2;
    const WOULD_DROP: [usize; 2] = [7, 8];
    let header = [
        "limit",
        "strategy",
        "mode",
        "passed packets",
        "passed bytes",
        "dropped packets",
        "dropped bytes",
        "would drop packets",
        "would drop bytes",
    ];
    let mut hidden = Vec::new();
    if rows
        .iter()
        .all(|row| row.strategy == Strategy::default().name())
    {
        hidden.push(STRATEGY);
    }
    if rows.iter().all(|row| row.mode == Mode::Enforce) {
        hidden.push(MODE);
        hidden.extend(WOULD_DROP);
    }
    let rows = rows.iter().map(|row| {
        let LimitTraffic {
            passed,
            dropped,
            would_drop,
        } = &row.traffic;
        [
            row.name.clone(),
            row.strategy.clone(),
            row.mode.name().to_owned(),
            count(passed.packets),
            count(passed.bytes),
            count(dropped.packets),
            count(dropped.bytes),
            count(would_drop.packets),
            count(would_drop.bytes),
        ]
    });
    table_without(&hidden, header, [3, 4, 5, 6, 7, 8], rows)
}
