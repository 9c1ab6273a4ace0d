//! Connections that the host itself began, and limits that may refuse their packets.

use limiter_common::{
    limit::Cost,
    packet::{FLAG_ACK, FLAG_SYN, PROTOCOL_TCP, TcpState},
};

use super::{Limit, Mode, OwnConnections, Policy, PortRange};

impl Policy {
    /// Returns whether the policy exempts the host's own connections from a limit or sieve that could refuse
    /// their packets.
    #[must_use]
    pub fn exempts_own_connections(&self) -> bool {
        self.own_connections == OwnConnections::Exempt
            && (self.limits.iter().any(may_refuse_answers)
                || self.sieves.iter().any(|sieve| sieve.pressure.is_some()))
    }
}

/// Returns whether a limit may count replies on connections that the host began.
fn may_refuse_answers(limit: &Limit) -> bool {
    let counts_tcp = limit.protocols().is_empty() || limit.protocols().contains(&PROTOCOL_TCP);
    let counts_answers = [FLAG_ACK, FLAG_SYN | FLAG_ACK]
        .into_iter()
        .any(|flags| limit.counts_segment(flags));
    let ports = &limit.matching.destination_ports;
    let states = limit.tcp_states();
    limit.mode != Mode::Off
        && limit.cost != Cost::Connections
        && counts_tcp
        && counts_answers
        && (states.is_empty() || states.iter().any(|one| *one != TcpState::None))
        && (ports.is_empty() || ports.iter().any(may_be_of_a_client))
}

/// The first port that programs without privileges may use.
const FIRST_UNPRIVILEGED: u16 = 1024;

/// Returns whether a connection that the host begins may use one of these ports. A single privileged port is
/// a service's.
fn may_be_of_a_client(ports: &PortRange) -> bool {
    *ports.end() >= FIRST_UNPRIVILEGED || ports.start() != ports.end()
}

#[cfg(test)]
mod tests {
    use crate::config;

    fn exempts(text: &str) -> bool {
        let config = config::parse(text, "test").unwrap_or_else(|errors| panic!("{errors}"));
        config.policy.exempts_own_connections()
    }

    #[test]
    fn only_where_something_may_refuse_their_packets() {
        for (matching, may_refuse) in [
            ("", true),
            ("match: {protocol: tcp}", true),
            ("match: {destination-port: 8080}", true),
            ("match: {destination-port: 600-700}", true),
            ("match: {tcp-flags: 'ack, !syn'}", true),
            ("match: {destination-port: [80, 443]}", false),
            ("match: {protocol: udp}", false),
            ("match: {tcp-flags: 'syn, !ack'}", false),
            ("mode: off", false),
        ] {
            let limit = |cost| {
                format!("limits: {{A: {{id: total, cost: {cost}, rate: 1/s, {matching}}}}}\n")
            };
            assert_eq!(exempts(&limit("packets")), may_refuse, "{matching}");
            assert!(!exempts(&(limit("packets") + "own-connections: limit")));
        }
        // None of these counts a reply.
        assert!(!exempts(
            "limits: {A: {id: total, cost: new-connections, rate: 1/s}}"
        ));
        assert!(!exempts(
            "limits: {A: {id: total, cost: connections, limit: 1}}"
        ));
    }
}
