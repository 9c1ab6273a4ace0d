//! Counts packets at each point on their way to the server and back.

use std::fs;

use anyhow::{Context as _, Result};
use serde::Serialize;
use testbed::{Namespace, Pair};

use crate::service::{
    growth::growing,
    setup::{CLIENTS_CPU, SERVER_CPU},
};

growing! {
    /// Packets on their way to the server, through it, and back to the clients, in that order.
    #[derive(Clone, Copy, Debug, Serialize)]
    pub(crate) struct Way {
        /// Datagrams that the clients sent.
        clients_sent: u64,
        /// Frames of the flood that the veth pair's ring did not take.
        ring_lost_flood: u64,
        /// Packets of the clients that the ring did not take.
        ring_lost_clients: u64,
        /// Frames that reached the server's interface.
        pub(crate) received: u64,
        /// Datagrams that the server's full sockets did not take.
        pub(crate) sockets_lost: u64,
        /// Datagrams that the server read.
        server_read: u64,
        /// TCP connections that the server's queues did not take.
        listeners_lost: u64,
        /// Datagrams that the server sent, to clients and to forged addresses.
        server_sent: u64,
        /// Packets of all interfaces that the backlog of the clients' CPU did not take.
        clients_backlog_lost: u64,
        /// Packets of all interfaces that the backlog of the server's CPU did not take.
        server_backlog_lost: u64,
        /// Answers that the backlog of the clients' CPU did not take.
        answers_lost: u64,
        /// Datagrams that the clients' full sockets did not take.
        clients_sockets_lost: u64,
        /// Datagrams that the clients read.
        clients_read: u64,
    }
}

impl Way {
    /// Reads the kernel's counters.
    pub(super) fn read(pair: &Pair) -> Result<Self> {
        let [server, client] = [&pair.server, &pair.client].map(Datagrams::read);
        let (server, client) = (server?, client?);
        let softnet = fs::read_to_string("/proc/net/softnet_stat")?;
        let backlog_lost =
            |cpu| dropped(&softnet, cpu).with_context(|| format!("no backlog of CPU {cpu}"));
        let (ring_lost, ring_lost_flood) = (pair.lost()?, pair.lost_live()?);
        Ok(Self {
            clients_sent: client.sent,
            ring_lost_flood,
            ring_lost_clients: ring_lost.saturating_sub(ring_lost_flood),
            received: pair.received()?,
            sockets_lost: server.lost,
            server_read: server.read,
            listeners_lost: server.listeners_lost,
            server_sent: server.sent,
            clients_backlog_lost: backlog_lost(CLIENTS_CPU)?,
            server_backlog_lost: backlog_lost(SERVER_CPU)?,
            answers_lost: pair.lost_answers()?,
            clients_sockets_lost: client.lost,
            clients_read: client.read,
        })
    }

    /// Returns the packets that the ring did not take.
    pub(crate) const fn ring_lost(&self) -> u64 {
        self.ring_lost_flood + self.ring_lost_clients
    }

    /// Returns the packets that backlogs did not take.
    pub(crate) const fn backlog_lost(&self) -> u64 {
        self.clients_backlog_lost + self.server_backlog_lost
    }
}

/// The datagrams of a namespace's network stack, of both families, and the connections that its
/// listeners did not take.
struct Datagrams {
    read: u64,
    sent: u64,
    lost: u64,
    listeners_lost: u64,
}

impl Datagrams {
    fn read(namespace: &Namespace) -> Result<Self> {
        let [snmp, snmp6, netstat] = ["snmp", "snmp6", "netstat"].map(|file| {
            let path = format!("/proc/thread-self/net/{file}");
            namespace
                .enter(|| fs::read_to_string(&path).with_context(|| format!("cannot read {path}")))
        });
        let (snmp, snmp6, netstat) = (snmp?, snmp6?, netstat?);
        let both = |name: &str| {
            let v4 = snmp_counter(&snmp, "Udp:", name);
            let v6 = snmp6_value(&snmp6, &format!("Udp6{name}"));
            let (v4, v6) = v4.zip(v6).with_context(|| format!("no {name}"))?;
            anyhow::Ok(v4 + v6)
        };
        Ok(Self {
            read: both("InDatagrams")?,
            sent: both("OutDatagrams")?,
            lost: both("RcvbufErrors")?,
            listeners_lost: snmp_counter(&netstat, "TcpExt:", "ListenDrops")
                .context("no ListenDrops")?,
        })
    }
}

/// Returns a value of net/snmp or net/netstat, where lines come in pairs: names, and numbers.
fn snmp_counter(snmp: &str, kind: &str, name: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with(kind));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let index = names.split_whitespace().position(|found| found == name)?;
    numbers.split_whitespace().nth(index)?.parse().ok()
}

/// Returns a value of net/snmp6, which has one per line.
fn snmp6_value(snmp6: &str, name: &str) -> Option<u64> {
    let mut lines = snmp6.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

/// Returns the packets that a CPU's backlog dropped: the second column, in hexadecimal. The
/// thirteenth column is the CPU's number.
fn dropped(softnet: &str, cpu: usize) -> Option<u64> {
    let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
    softnet.lines().find_map(|line| {
        let mut columns = line.split_whitespace();
        let dropped = number(columns.nth(1))?;
        (number(columns.nth(10))? == u64::try_from(cpu).ok()?).then_some(dropped)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_lost() {
        let snmp = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams \
                    RcvbufErrors\nUdp: 5 4 3 2 77\nUdpLite: RcvbufErrors\nUdpLite: 9\n";
        assert_eq!(snmp_counter(snmp, "Udp:", "RcvbufErrors"), Some(77));
        assert_eq!(snmp_counter(snmp, "Udp:", "Other"), None);
        let snmp6 = "Ip6InReceives \t 7\nUdp6RcvbufErrors \t 8\n";
        assert_eq!(snmp6_value(snmp6, "Udp6RcvbufErrors"), Some(8));
        assert_eq!(snmp6_value(snmp6, "Udp6Other"), None);
        let line = |lost: &str, cpu: &str| format!("ff {lost} 0 0 0 0 0 0 0 0 0 0 {cpu} 0 0\n");
        let softnet = line("0000000a", "00000000") + &line("00000010", "00000003");
        let found = [0, 1, 3].map(|cpu| dropped(&softnet, cpu));
        assert_eq!(found, [Some(10), None, Some(16)]);
    }
}
