//! Finds matches that no packet fits, and fields without effect.

use ipnet::IpNet;
use limiter_common::{
    address::Family,
    limit::{Cost, IdFormat},
    packet::TcpState,
};

use super::{
    limit_id::LimitKeys,
    reader::{Fields, Reader},
};
use crate::policy::{Match, TcpFlags};

pub(super) const PROTOCOL: &str = "protocol";
pub(super) const DESTINATION_PORT: &str = "destination-port";
pub(super) const SOURCE_PORT: &str = "source-port";
pub(super) const TCP_FLAGS: &str = "tcp-flags";
pub(super) const ICMP_TYPE: &str = "icmp-type";
pub(super) const DESTINATION: &str = "destination";
pub(super) const FRAGMENTS: &str = "fragments";
pub(super) const STANDING: &str = "standing";
pub(super) const STATE: &str = "state";
pub(super) const DNS_NAME: &str = "dns-name";
pub(super) const DNS_TYPE: &str = "dns-type";
pub(super) const DNS_OPCODE: &str = "dns-opcode";
pub(super) const DNS_RD: &str = "dns-rd";
pub(super) const EDNS: &str = "edns";
pub(super) const SERVER_NAME: &str = "server-name";

/// The parts of a match on the DNS question.
const OF_QUESTION: [&str; 5] = [DNS_NAME, DNS_TYPE, DNS_OPCODE, DNS_RD, EDNS];

/// Reports the contradictions within a match and with its limit. A part that is already wrong is not
/// in `matching` and is not checked.
pub(super) fn check(
    reader: &mut Reader<'_, '_>,
    fields: &Fields<'_>,
    matching: &Match,
    id: Option<LimitKeys>,
    cost: Option<Cost>,
) {
    let id_format = id.map(|id| id.format);
    let mut error = |field, message: String| {
        if let Some(node) = fields.get(field) {
            reader.error(node.at, message);
        }
    };
    for (field, ports) in [
        (DESTINATION_PORT, &matching.destination_ports),
        (SOURCE_PORT, &matching.source_ports),
    ] {
        if !ports.is_empty() && !may_have_ports(matching) {
            error(
                field,
                "no packet matches: only tcp, udp, 33 (DCCP), 132 (SCTP) and 136 (UDP-Lite) have \
                 ports"
                    .to_owned(),
            );
        }
    }
    if matching.tcp_flags.is_some() && !is_tcp(matching) {
        error(
            TCP_FLAGS,
            format!("only tcp has these flags, but '{PROTOCOL}' names another protocol"),
        );
    }
    if !matching.tcp_states.is_empty() {
        check_states(matching, cost, &mut error);
    }
    if !matching.icmp_types.is_empty() {
        check_icmp_types(matching, id_format, &mut error);
    }
    // A later fragment may lack these fields; in IPv4 it still has the protocol.
    let hidden: &[&str] = match id_format {
        Some(id_format) if !id_format.is_for(Family::V6) => {
            &[DESTINATION_PORT, SOURCE_PORT, TCP_FLAGS, ICMP_TYPE]
        }
        _ => &[
            PROTOCOL,
            DESTINATION_PORT,
            SOURCE_PORT,
            TCP_FLAGS,
            ICMP_TYPE,
        ],
    };
    let by_question = counts_by_question(matching, id, cost);
    if by_question && !counts_by_server_name(matching, id_format) {
        check_question(matching, cost, &mut error);
    }
    let by_server_name = counts_by_server_name(matching, id_format);
    if by_server_name {
        if by_question {
            for field in OF_QUESTION.into_iter().chain([SERVER_NAME]) {
                error(
                    field,
                    "no packet has both a DNS question and a server name".to_owned(),
                );
            }
        } else {
            check_server_name(matching, cost, &mut error);
        }
    }
    if matching.tcp_states.is_empty()
        && !by_question
        && !by_server_name
        && cost != Some(Cost::Handshakes)
        && hidden.iter().all(|field| fields.is_missing(field))
        && let [others @ .., last] = hidden
    {
        error(
            FRAGMENTS,
            format!(
                "'{FRAGMENTS}' has no effect without {} or {last}",
                others.join(", ")
            ),
        );
    }
    if cost == Some(Cost::NewConnections) {
        check_new_connections(matching, &mut error);
    }
    if let Some(cost @ (Cost::Connections | Cost::Handshakes)) = cost {
        check_connections(matching, cost, &mut error);
    }
    if let Some(id_format) = id_format {
        check_family(matching, id_format, &mut error);
    }
}

/// Returns whether a limit counts packets by their DNS question.
pub(super) fn counts_by_question(
    matching: &Match,
    id: Option<LimitKeys>,
    cost: Option<Cost>,
) -> bool {
    id.and_then(LimitKeys::name_kind).is_some()
        || !matching.dns.is_everything()
        || cost == Some(Cost::NewNames)
}

/// Returns whether a limit counts packets by the server name of their connection.
pub(super) fn counts_by_server_name(matching: &Match, id_format: Option<IdFormat>) -> bool {
    id_format == Some(IdFormat::ServerName) || !matching.server_names.is_empty()
}

/// Reports a match that fits no connection with a server name.
fn check_server_name(
    matching: &Match,
    cost: Option<Cost>,
    error: &mut impl FnMut(&'static str, String),
) {
    if cost == Some(Cost::Connections) {
        // `check_connections` reports the remaining contradictions.
        return;
    }
    let has_names = |protocol: &u8| [Match::TCP, Match::UDP].contains(protocol);
    if !matching.protocols.iter().all(has_names) {
        error(
            PROTOCOL,
            format!(
                "server names are read in tcp and udp alone: leave '{PROTOCOL}' out, or name these"
            ),
        );
    }
    error(
        ICMP_TYPE,
        format!("server names are read in tcp and udp alone: leave '{ICMP_TYPE}' out"),
    );
    error(
        FRAGMENTS,
        format!("'{FRAGMENTS}' has no effect: later fragments are of no known connection"),
    );
    if let Some(cost) = cost.filter(|cost| precedes_server_name(*cost)) {
        error(SERVER_NAME, no_server_name_yet(cost));
    }
}

/// Returns whether the cost's event (SYN, completed handshake) comes before the server name.
pub(super) const fn precedes_server_name(cost: Cost) -> bool {
    matches!(cost, Cost::NewConnections | Cost::Handshakes)
}

pub(super) fn no_server_name_yet(cost: Cost) -> String {
    format!(
        "the server name is not known yet when cost {} is decided on: set 'cost' to packets, bytes or \
         connections",
        cost.name()
    )
}

/// Reports a match that fits no DNS question.
fn check_question(
    matching: &Match,
    cost: Option<Cost>,
    error: &mut impl FnMut(&'static str, String),
) {
    if matching.protocols.iter().any(|one| *one != Match::UDP) {
        error(
            PROTOCOL,
            format!("DNS questions are read in udp alone: leave '{PROTOCOL}' out"),
        );
    }
    for field in [TCP_FLAGS, STATE, ICMP_TYPE] {
        error(
            field,
            format!("DNS questions are read in udp alone: leave '{field}' out"),
        );
    }
    error(
        FRAGMENTS,
        format!("'{FRAGMENTS}' has no effect: later fragments have no question"),
    );
    if let Some(cost) =
        cost.filter(|cost| !matches!(cost, Cost::Packets | Cost::Bytes | Cost::NewNames))
    {
        for field in OF_QUESTION {
            error(
                field,
                format!(
                    "'{field}' is of packets with a question, which cost {} does not count",
                    cost.name()
                ),
            );
        }
    }
}

/// Reports a match on ICMP types that fits no message. Each protocol that the match names has ICMP types.
fn check_icmp_types(
    matching: &Match,
    id_format: Option<IdFormat>,
    error: &mut impl FnMut(&'static str, String),
) {
    if !matching.protocols.is_empty() {
        // The protocol's own error already tells.
        return;
    }
    for field in [DESTINATION_PORT, SOURCE_PORT, TCP_FLAGS, STATE] {
        error(
            field,
            format!("no packet has both this and an ICMP type: leave '{field}' out"),
        );
    }
    let (name, family) = match matching.icmp_types.protocols() {
        [Match::ICMP] => ("icmp", Family::V4),
        [Match::ICMPV6] => ("icmpv6", Family::V6),
        _ => return,
    };
    if let Some(id_format) = id_format.filter(|format| !format.is_for(family)) {
        let id_format = id_format.name();
        error(
            ICMP_TYPE,
            format!("only {name} has these types, which id {id_format} never sees"),
        );
    }
}

/// Reports a match on connection states that fits no segment, and fields without effect beside it.
fn check_states(
    matching: &Match,
    cost: Option<Cost>,
    error: &mut impl FnMut(&'static str, String),
) {
    if !is_tcp(matching) {
        error(
            STATE,
            format!("only tcp has connections, but '{PROTOCOL}' names another protocol"),
        );
    }
    error(
        FRAGMENTS,
        format!("'{FRAGMENTS}' has no effect with '{STATE}': later fragments are not counted"),
    );
    let opens = TcpFlags::SYN | TcpFlags::ACK;
    let only_syns = cost == Some(Cost::NewConnections)
        || matching.tcp_flags.is_some_and(|flags| {
            flags.set & opens == TcpFlags::SYN && flags.clear & TcpFlags::ACK != 0
        });
    if only_syns && !matching.tcp_states.contains(&TcpState::New) {
        error(
            STATE,
            "no packet matches: a SYN begins a connection, so its state is new".to_owned(),
        );
    }
}

/// Reports a match that excludes all new connections: TCP segments with SYN and without ACK.
fn check_new_connections(matching: &Match, error: &mut impl FnMut(&'static str, String)) {
    if !is_tcp(matching) {
        error(PROTOCOL, "cost new-connections counts only tcp".to_owned());
    }
    error(ICMP_TYPE, "cost new-connections counts only tcp".to_owned());
    if let Some(flags) = matching.tcp_flags
        && (flags.set & TcpFlags::ACK != 0 || flags.clear & TcpFlags::SYN != 0)
    {
        error(
            TCP_FLAGS,
            format!("no packet matches: a new connection has syn without ack, never '{flags}'"),
        );
    }
}

/// Reports conditions on packets: a connection as a whole has no flags, fragments or state.
fn check_connections(matching: &Match, cost: Cost, error: &mut impl FnMut(&'static str, String)) {
    let name = cost.name();
    let counted = if cost == Cost::Connections {
        "what is open"
    } else {
        "what is completed"
    };
    if !is_tcp(matching) {
        error(PROTOCOL, format!("cost {name} counts only tcp"));
    }
    for field in [TCP_FLAGS, ICMP_TYPE, FRAGMENTS, STANDING, STATE] {
        error(
            field,
            format!("'{field}' is of packets, but cost {name} counts {counted}: leave it out"),
        );
    }
}

/// Reports a match on the other family: a limit on one family's ranges sees only that family.
fn check_family(
    matching: &Match,
    id_format: IdFormat,
    error: &mut impl FnMut(&'static str, String),
) {
    for (number, name, family) in [
        (Match::ICMP, "icmp", Family::V4),
        (Match::ICMPV6, "icmpv6", Family::V6),
    ] {
        if matching.protocols.contains(&number) && !id_format.is_for(family) {
            error(
                PROTOCOL,
                format!("id {} never sees {name}", id_format.name()),
            );
        }
    }
    let seen = |prefix: &IpNet| match prefix {
        IpNet::V4(_) => id_format.is_for(Family::V4),
        IpNet::V6(_) => id_format.is_for(Family::V6),
    };
    if !matching.destinations.is_empty() && !matching.destinations.iter().any(seen) {
        error(
            DESTINATION,
            format!(
                "no packet matches: id {} is for the other IP version",
                id_format.name()
            ),
        );
    }
}

fn may_have_ports(matching: &Match) -> bool {
    matching.protocols.is_empty()
        || matching
            .protocols
            .iter()
            .any(|number| Match::PROTOCOLS_WITH_PORTS.contains(number))
}

fn is_tcp(matching: &Match) -> bool {
    matching
        .protocols
        .iter()
        .all(|number| *number == Match::TCP)
}
