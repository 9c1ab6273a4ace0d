//! Warns of limits on open connections if this host forwards, but forwarded connections do not count, or count
//! late.

use std::io::Write as _;

use limiter_common::limit::Cost;
use limiter_host::{forwarding, netlink::conntrack::host};
use limiter_policy::policy::{CountedConnections, Limit, Mode, Policy, configured_name};

use super::super::output::stderr;

pub(super) fn warn(policy: &Policy) {
    if policy.connections == CountedConnections::Tracked
        && let Some(reason) = host::no_events_reason()
    {
        let _ = writeln!(
            stderr(),
            "warning: connections that this host forwards are counted only once a second: {reason}"
        );
    }
    let Some(setting) = forwarding::setting() else {
        return;
    };
    for limit in overlooking(policy) {
        let limit = configured_name(&limit.name);
        let _ = writeln!(
            stderr(),
            "warning: limit {limit}: this host forwards ({setting} is not 0), and only connections of its \
             own sockets count: with 'connections: tracked' those that it forwards do, too; or name its own \
             addresses in 'destination'"
        );
    }
}

/// Returns the limits that may be meant for connections which are not counted.
fn overlooking(policy: &Policy) -> impl Iterator<Item = &Limit> {
    let are_forwarded_counted = policy.connections == CountedConnections::Tracked;
    let limits = policy.limits.iter().filter(move |_| !are_forwarded_counted);
    limits.filter(|limit| {
        limit.is_first_part()
            && limit.cost == Cost::Connections
            && limit.mode != Mode::Off
            && limit.matching.destinations.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_overlook_what_is_forwarded() {
        for (more, expected) in [
            ("}}", 1),
            (", mode: observe}}", 1),
            (", mode: off}}", 0),
            (", match: {destination-port: 443}}}", 1),
            (", match: {destination: 192.0.2.1}}}", 0),
            ("}}\nconnections: own", 1),
            ("}}\nconnections: tracked", 0),
        ] {
            let text = format!("limits: {{Web: {{id: total, cost: connections, limit: 9{more}");
            let config = limiter_policy::config::parse(&text, "test");
            let config = config.unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(overlooking(&config.policy).count(), expected, "{more}");
        }
    }
}
