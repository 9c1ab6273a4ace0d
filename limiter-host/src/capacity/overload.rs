//! The host's overload: counters of packets that it lost because they were not received in time.

/// The packets that the host has lost since it started, because they were not received in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverloadCounters {
    /// UDP datagrams for which a socket's receive buffer had no room, in this network namespace.
    pub receive_buffer: u64,
    /// TCP connections for which a listener's queue had no room, in this network namespace.
    pub listen_queue: u64,
    /// Packets for which a CPU's backlog had no room, on the whole machine.
    pub backlog: u64,
}

impl OverloadCounters {
    /// Reads the kernel's texts. A counter that the kernel does not have is 0.
    pub(super) fn parse(snmp: &str, snmp6: &str, netstat: &str, softnet: &str) -> Self {
        Self {
            receive_buffer: in_tables(snmp, "Udp", "RcvbufErrors")
                + in_list(snmp6, "Udp6RcvbufErrors"),
            listen_queue: in_tables(netstat, "TcpExt", "ListenOverflows"),
            backlog: softnet.lines().map(dropped).sum(),
        }
    }
}

/// Returns a counter of a file in which a line of names precedes each line of numbers.
fn in_tables(text: &str, table: &str, name: &str) -> u64 {
    let mut rows = text.lines().filter_map(|line| {
        let (row, rest) = line.split_once(':')?;
        (row == table).then(|| rest.split_ascii_whitespace())
    });
    let (Some(names), Some(numbers)) = (rows.next(), rows.next()) else {
        return 0;
    };
    names
        .zip(numbers)
        .find(|(this, _)| *this == name)
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or(0)
}

/// Returns a counter of a file in which each line has a name and a number.
fn in_list(text: &str, name: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .find(|(this, _)| *this == name)
        .and_then(|(_, number)| number.trim().parse().ok())
        .unwrap_or(0)
}

/// Returns the second number of a CPU's line.
fn dropped(line: &str) -> u64 {
    line.split_ascii_whitespace()
        .nth(1)
        .and_then(|number| u64::from_str_radix(number, 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::HostFiles;

    #[test]
    fn the_kernels_files() {
        let snmp = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
                    Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
                    Udp: 19 7 3 20 5 2\n\
                    UdpLite: InDatagrams RcvbufErrors\nUdpLite: 0 9\n";
        let snmp6 = "Ip6InReceives                   \t12\nUdp6RcvbufErrors                \t6\n";
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 8 4 4\n";
        let softnet = "000000a1 0000000b 00000000 00000000\n000000a2 00000010 00000000 00000000\n";
        let found = OverloadCounters::parse(snmp, snmp6, netstat, softnet);
        let expected = OverloadCounters {
            receive_buffer: 11,
            listen_queue: 4,
            backlog: 0x1b,
        };
        assert_eq!(found, expected);
        assert_eq!(
            OverloadCounters::parse("", "", "", ""),
            OverloadCounters::default()
        );
    }

    /// An unread socket loses datagrams beyond its buffer, and the host counts them.
    #[test]
    fn a_socket_that_nobody_reads() {
        use std::net::UdpSocket;

        let files = HostFiles::open().unwrap();
        let before = files.overload().unwrap();
        let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = deaf.local_addr().unwrap();
        for _ in 0..10_000 {
            sender.send_to(&[0; 1000], to).unwrap();
        }
        let after = files.overload().unwrap();
        assert!(after.receive_buffer > before.receive_buffer, "{after:?}");
    }
}
