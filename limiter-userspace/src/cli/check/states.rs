//! Warns of limits on segments of no connection if this host forwards: it sees no connection for segments it
//! forwards.

use std::io::Write as _;

use limiter_common::packet::TcpState;
use limiter_host::forwarding;
use limiter_policy::policy::{Limit, Mode, Policy, configured_name};

use super::super::output::stderr;

pub(super) fn warn(policy: &Policy) {
    let Some(setting) = forwarding::setting() else {
        return;
    };
    for limit in policy.limits.iter().filter(|limit| takes_others(limit)) {
        let limit = configured_name(&limit.name);
        let _ = writeln!(
            stderr(),
            "warning: limit {limit}: this host forwards ({setting} is not 0), and what it forwards has \
             the state none, so the limit may drop it: name this host's own addresses in 'destination'"
        );
    }
}

/// Returns whether a limit may drop segments of connections that this host forwards, or of its containers.
fn takes_others(limit: &Limit) -> bool {
    limit.is_first_part()
        && limit.mode == Mode::Enforce
        && limit.matching.tcp_states.contains(&TcpState::None)
        && limit.matching.destinations.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_may_drop_what_is_forwarded() {
        for (matching, expected) in [
            ("match: {state: none}", true),
            ("match: {state: [new, none], destination-port: 443}", true),
            ("match: {state: none, destination: 192.0.2.1}", false),
            ("match: {state: established}", false),
            ("match: {protocol: tcp}", false),
            ("match: {state: none}, mode: observe", false),
        ] {
            let text = format!(
                "limits: {{Stray: {{id: total, cost: packets, burst: 9, count: 9, period: 1s, {matching}}}}}"
            );
            let config = limiter_policy::config::parse(&text, "test");
            let config = config.unwrap_or_else(|errors| panic!("{errors}"));
            let takes = config.policy.limits.iter().any(takes_others);
            assert_eq!(takes, expected, "{matching}");
        }
    }
}
