//! Whose packets a limit counts for certain: nobody's, where a sender can write any source.

use limiter_common::limit::Cost;

use super::{Limit, Match, TcpFlags};

/// Whether anybody can send packets that a limit counts in the name of others: it may count others
/// than those of established TCP connections.
///
/// Those are packets of TCP with ACK and without SYN. The flags are what the sender says, too: no
/// limit sees a handshake, and who sends such packets with forged sources is counted as well. But
/// no service answers to them, so nobody who floods services begins with them.
#[must_use]
pub fn is_forgeable(limit: &Limit) -> bool {
    let Match {
        protocols,
        tcp_flags,
        ..
    } = &limit.matching;
    let are_established = tcp_flags.is_some_and(|TcpFlags { set, clear }| {
        set & TcpFlags::ACK != 0 && clear & TcpFlags::SYN != 0
    });
    limit.cost == Cost::NewConnections || protocols[..] != [Match::TCP] || !are_established
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::BUILT_IN;

    use super::*;

    #[test]
    fn only_connections_that_stand_are_not() {
        let check = |cost, protocols: &[u8], flags: Option<(u8, u8)>, expected| {
            let limit = Limit {
                cost,
                matching: Match {
                    protocols: protocols.to_vec(),
                    tcp_flags: flags.map(|(set, clear)| TcpFlags { set, clear }),
                    destination_ports: vec![443..=443],
                    ..Match::default()
                },
                ..Limit::of_built_in(&BUILT_IN[0], None)
            };
            assert_eq!(is_forgeable(&limit), expected, "{}", limit.matching);
        };
        let (syn, ack, fin) = (TcpFlags::SYN, TcpFlags::ACK, 1);
        check(Cost::Packets, &[], None, true);
        check(Cost::Packets, &[Match::UDP], None, true);
        check(Cost::Packets, &[Match::TCP], None, true);
        check(Cost::Packets, &[Match::TCP], Some((syn, ack)), true);
        check(Cost::Packets, &[Match::TCP], Some((ack, 0)), true);
        check(Cost::Packets, &[Match::TCP], Some((0, syn)), true);
        check(Cost::Packets, &[Match::TCP], Some((ack, syn)), false);
        check(Cost::Bytes, &[Match::TCP], Some((ack | fin, syn)), false);
        check(Cost::NewConnections, &[Match::TCP], Some((ack, syn)), true);
        check(
            Cost::Packets,
            &[Match::TCP, Match::UDP],
            Some((ack, syn)),
            true,
        );
    }
}
