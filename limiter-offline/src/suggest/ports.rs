//! Finds the ports that the host serves, by its replies.

use limiter_common::packet::{FLAG_ACK, FLAG_SYN, Facts, Transport};
use limiter_policy::policy::Match;

use super::Service;

const PORTS: usize = 1 << 16;

/// The first ephemeral port of a host (`net.ipv4.ip_local_port_range`).
const FIRST_EPHEMERAL: u16 = 32768;

/// The first port beyond the well-known services.
const FIRST_UNRESERVED: u16 = 1024;

/// TCP: a peer began a connection to the port.
const BEGUN: u8 = 1;
/// TCP: a peer sent more after its SYN, so the connection was probably accepted.
const CONTINUED: u8 = 2;
/// UDP: the first packet of the port came from a peer.
const QUERIED: u8 = 4;
/// UDP: the first packet of the port went to a peer, or came from a service.
const QUERIES: u8 = 8;
/// The host answered from the port.
const ANSWERED: u8 = 16;

/// A byte for each port, so traffic cannot grow the memory.
pub(super) struct Ports {
    tcp: Vec<u8>,
    udp: Vec<u8>,
    /// Whether the capture has packets from the host: then it serves only ports that it answers from.
    two_way: bool,
}

impl Ports {
    pub(super) fn new() -> Self {
        Self {
            tcp: vec![0; PORTS],
            udp: vec![0; PORTS],
            two_way: false,
        }
    }

    /// Returns whether the capture has packets from the host.
    pub(super) const fn is_two_way(&self) -> bool {
        self.two_way
    }

    /// Records a packet to the host.
    pub(super) fn incoming(&mut self, facts: &Facts) {
        let port = facts.destination_port;
        match (facts.transport, facts.protocol) {
            (Transport::Tcp, _) => {
                let known = &mut self.tcp[usize::from(port)];
                match facts.kind.tcp_flags() & (FLAG_SYN | FLAG_ACK) {
                    FLAG_SYN => *known |= BEGUN,
                    FLAG_ACK if *known & BEGUN != 0 => *known |= CONTINUED,
                    _ => {}
                }
            }
            (Transport::Ports, Match::UDP) => {
                let known = &mut self.udp[usize::from(port)];
                if *known == 0 {
                    // A reply of a service to a query before the capture.
                    let is_reply = port >= FIRST_UNRESERVED && facts.source_port < FIRST_UNRESERVED;
                    *known = if is_reply { QUERIES } else { QUERIED };
                }
            }
            _ => {}
        }
    }

    /// Records a packet from the host.
    pub(super) fn outgoing(&mut self, facts: &Facts) {
        self.two_way = true;
        let port = usize::from(facts.source_port);
        match (facts.transport, facts.protocol) {
            (Transport::Tcp, _) => {
                const BOTH: u8 = FLAG_SYN | FLAG_ACK;
                if facts.kind.tcp_flags() & BOTH == BOTH {
                    self.tcp[port] |= ANSWERED;
                }
            }
            (Transport::Ports, Match::UDP) => {
                let known = &mut self.udp[port];
                if *known == 0 {
                    *known = QUERIES;
                } else if *known & QUERIED != 0 {
                    *known |= ANSWERED;
                }
            }
            _ => {}
        }
    }

    /// Returns whether the host seems to serve it. Without packets from the host, this is a guess: a TCP
    /// service if clients continue connections to it, a UDP service if its port does not look like a client's.
    pub(super) fn serves(&self, service: Service) -> bool {
        let Some(port) = service.port() else {
            return true;
        };
        let number = usize::from(port);
        if service.is_tcp() {
            let known = self.tcp[number];
            known & ANSWERED != 0 || !self.two_way && known & CONTINUED != 0
        } else {
            let known = self.udp[number];
            known & ANSWERED != 0 || !self.two_way && known & QUERIED != 0 && port < FIRST_EPHEMERAL
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::packet::PacketKind;

    use super::*;

    fn tcp(source_port: u16, destination_port: u16, flags: u8) -> Facts {
        Facts {
            source_port,
            destination_port,
            kind: PacketKind::segment(flags),
            transport: Transport::Tcp,
            protocol: Match::TCP,
            ..Facts::NONE
        }
    }

    fn udp(source_port: u16, destination_port: u16) -> Facts {
        Facts {
            source_port,
            destination_port,
            transport: Transport::Ports,
            protocol: Match::UDP,
            ..Facts::NONE
        }
    }

    #[test]
    fn tcp_is_served_where_the_host_takes_connections() {
        let mut ports = Ports::new();
        ports.incoming(&tcp(40_000, 443, FLAG_SYN));
        ports.incoming(&tcp(40_000, 23, FLAG_SYN));
        assert!(!ports.serves(Service::tcp(443)));
        ports.outgoing(&tcp(443, 40_000, FLAG_SYN | FLAG_ACK));
        ports.outgoing(&tcp(23, 40_000, FLAG_ACK));
        // The host's own connection to another server.
        ports.outgoing(&tcp(50_000, 443, FLAG_SYN));
        ports.incoming(&tcp(443, 50_000, FLAG_SYN | FLAG_ACK));
        assert!(ports.serves(Service::tcp(443)));
        assert!(!ports.serves(Service::tcp(23)) && !ports.serves(Service::tcp(50_000)));
        // A scanner continues its connection, but gets no reply.
        ports.incoming(&tcp(40_000, 23, FLAG_ACK));
        assert!(!ports.serves(Service::tcp(23)));
    }

    #[test]
    fn udp_is_served_where_the_host_answers() {
        let mut ports = Ports::new();
        ports.incoming(&udp(40_000, 53));
        ports.incoming(&udp(40_000, 123));
        ports.outgoing(&udp(53, 40_000));
        // The host's own queries, one of them from before the capture.
        ports.outgoing(&udp(50_000, 53));
        ports.incoming(&udp(53, 50_000));
        ports.outgoing(&udp(50_000, 53));
        ports.incoming(&udp(443, 50_001));
        ports.outgoing(&udp(50_001, 443));
        assert!(ports.serves(Service::udp(53)));
        for port in [123, 50_000, 50_001] {
            assert!(!ports.serves(Service::udp(port)), "{port}");
        }
        // A service on a high port.
        ports.incoming(&udp(40_000, 51_820));
        ports.outgoing(&udp(51_820, 40_000));
        assert!(ports.serves(Service::udp(51_820)));
    }

    #[test]
    fn one_direction_alone_says_less() {
        let mut ports = Ports::new();
        ports.incoming(&tcp(40_000, 443, FLAG_SYN));
        assert!(!ports.serves(Service::tcp(443)));
        ports.incoming(&tcp(40_000, 443, FLAG_ACK));
        ports.incoming(&tcp(443, 50_000, FLAG_ACK));
        ports.incoming(&udp(40_000, 53));
        ports.incoming(&udp(53, 50_000));
        assert!(ports.serves(Service::tcp(443)) && ports.serves(Service::udp(53)));
        assert!(!ports.serves(Service::tcp(50_000)) && !ports.serves(Service::udp(50_000)));
    }
}
