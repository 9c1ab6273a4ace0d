//! Which limits count segments of connections in each state.

use limiter_common::packet::TcpState;

use super::limit_sets::set_of;
use crate::policy::Limit;

/// Returns the limits that count segments of connections in each state. Limits without states count any
/// packet.
pub(super) fn of_each(limits: &[Limit]) -> [u64; TcpState::COUNT] {
    TcpState::ALL.map(|state| {
        let others = |limit: &Limit| {
            let counted = limit.tcp_states();
            !counted.is_empty() && !counted.iter().any(|one| state.is_counted_by(*one))
        };
        !set_of(limits, others)
    })
}
