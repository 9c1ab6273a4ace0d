//! Decides which end of a flow is its client.

use std::net::IpAddr;

use limiter_common::{
    address::Address,
    packet::{FLAG_ACK, FLAG_SYN, Facts, PROTOCOL_TCP, PROTOCOL_UDP, TcpNumbers, Transport},
};
use limiter_names::{Flow, Protocol};

/// Returns a packet's flow, with its source as the client.
pub(super) fn from_source(facts: &Facts) -> Option<Flow> {
    let protocol = match (facts.transport, facts.protocol) {
        (Transport::Tcp, PROTOCOL_TCP) => Protocol::Tcp,
        (Transport::Ports, PROTOCOL_UDP) => Protocol::Udp,
        _ => return None,
    };
    let destination = Address {
        high: facts.destination_high,
        low: facts.destination_low,
        ..facts.source
    };
    Some(Flow {
        client: IpAddr::from(facts.source),
        server: IpAddr::from(destination),
        client_port: facts.source_port,
        server_port: facts.destination_port,
        protocol,
    })
}

/// Returns the flow with client and server swapped.
pub(super) const fn reversed(flow: Flow) -> Flow {
    Flow {
        client: flow.server,
        server: flow.client,
        client_port: flow.server_port,
        server_port: flow.client_port,
        protocol: flow.protocol,
    }
}

/// The direction and first sequence number, as far as a flow's first packet shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowStart {
    /// Whether the packet's source is the client.
    pub(super) is_from_client: bool,
    /// The sequence number of the client's first byte, if known.
    pub(super) first: Option<u32>,
}

/// Finds the client by a flow's first packet: the sender of the SYN, or else the end with the higher port,
/// since servers use low ports.
pub(super) fn beginning(facts: &Facts, numbers: Option<TcpNumbers>) -> FlowStart {
    match (facts.kind.tcp_flags() & (FLAG_SYN | FLAG_ACK), numbers) {
        (FLAG_SYN, Some(numbers)) => FlowStart {
            is_from_client: true,
            first: Some(numbers.sequence.wrapping_add(1)),
        },
        (flags, Some(numbers)) if flags == FLAG_SYN | FLAG_ACK => FlowStart {
            is_from_client: false,
            first: Some(numbers.acknowledged),
        },
        _ => FlowStart {
            is_from_client: facts.source_port >= facts.destination_port,
            first: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::packet::PacketKind;

    use super::*;

    fn begun(flags: u8, source_port: u16, destination_port: u16) -> FlowStart {
        let facts = Facts {
            kind: PacketKind::segment(flags),
            source_port,
            destination_port,
            ..Facts::NONE
        };
        let numbers = TcpNumbers {
            sequence: u32::MAX,
            acknowledged: 7,
        };
        beginning(&facts, Some(numbers))
    }

    #[test]
    fn who_opens_a_connection_is_the_client() {
        let beginning = |is_from_client, first| FlowStart {
            is_from_client,
            first,
        };
        assert_eq!(begun(FLAG_SYN, 80, 50_000), beginning(true, Some(0)));
        let syn_ack = FLAG_SYN | FLAG_ACK;
        assert_eq!(begun(syn_ack, 50_000, 80), beginning(false, Some(7)));
        assert_eq!(begun(FLAG_ACK, 50_000, 80), beginning(true, None));
        assert_eq!(begun(FLAG_ACK, 80, 50_000), beginning(false, None));
        assert_eq!(begun(0, 443, 443), beginning(true, None));
    }
}
