//! What was done to packets: by each limit, the same for the live limiter and for a replay; and
//! for each reason.

use limiter_common::{counters::LimitTraffic, reason::Action};

use super::render::{count, table_without};
use crate::{control::protocol::PolicyStatus, policy::Mode};

/// One limit's row.
pub(super) struct LimitRow {
    pub(super) name: String,
    /// The name of its [`Mode`].
    pub(super) mode: String,
    pub(super) traffic: LimitTraffic,
}

/// The table; modes, and what would have been dropped, only where a limit does less than
/// enforce.
pub(super) fn limits_table(rows: &[LimitRow]) -> String {
    const MODE: usize = 1;
    const WOULD_DROP: [usize; 2] = [6, 7];
    let header = [
        "limit",
        "mode",
        "passed packets",
        "bytes",
        "dropped packets",
        "bytes",
        "would drop packets",
        "bytes",
    ];
    let hidden = if rows.iter().all(|row| row.mode == Mode::Enforce.name()) {
        [MODE].into_iter().chain(WOULD_DROP).collect()
    } else {
        Vec::new()
    };
    let rows = rows.iter().map(|row| {
        let LimitTraffic {
            passed,
            dropped,
            would_drop,
        } = &row.traffic;
        [
            row.name.clone(),
            row.mode.clone(),
            count(passed.packets),
            count(passed.bytes),
            count(dropped.packets),
            count(dropped.bytes),
            count(would_drop.packets),
            count(would_drop.bytes),
        ]
    });
    table_without(&hidden, header, [2, 3, 4, 5, 6, 7], rows)
}

/// What is done to malformed packets under the policy that is in force.
pub(super) fn malformed_action(policy: &PolicyStatus) -> Action {
    if policy.malformed == Action::Pass.name() {
        Action::Pass
    } else {
        Action::Drop
    }
}
