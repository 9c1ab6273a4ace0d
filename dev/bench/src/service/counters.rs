//! What the kernel counts: what became of packets on their way to the server and back, and who used
//! the CPUs.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use nix::unistd::{SysconfVar, sysconf};
use serde::Serialize;
use testbed::{Namespace, Pair};

use super::{
    place::{CLIENTS_CPU, SERVER_CPU},
    turns::{Turns, of_processes, of_thread},
};
use crate::lane::to_f64;

/// Counters at one time, to be compared with later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) way: Way,
    /// The CPU time of the server.
    pub(super) server: Duration,
    /// The CPU time of the thread that receives.
    pub(super) receiver: Duration,
    pub(super) receiver_turns: Turns,
    pub(super) server_turns: Turns,
    pub(super) clients_cpu: CpuTime,
    pub(super) server_cpu: CpuTime,
}

/// Packets, in the order of their way: to the server, through it, and back to the clients. Where each
/// number is the one before less what was lost in between, nobody else has lost any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Way {
    /// Datagrams that the clients sent.
    pub(super) clients_sent: u64,
    /// Frames of the flood, and packets of the clients, that the veth pair's ring did not take.
    pub(super) ring_lost_flood: u64,
    pub(super) ring_lost_clients: u64,
    /// Frames that reached the server's interface.
    pub(super) received: u64,
    /// Datagrams that the server's full sockets did not take, and those that it read.
    pub(super) sockets_lost: u64,
    pub(super) server_read: u64,
    /// TCP connections that the server's queues did not take.
    pub(super) listeners_lost: u64,
    /// Datagrams that the server sent, to clients and to forged addresses.
    pub(super) server_sent: u64,
    /// Packets that the backlogs did not take: of any interface on the clients' CPU and on the
    /// server's, and of them answers on the clients' interface.
    pub(super) clients_backlog_lost: u64,
    pub(super) server_backlog_lost: u64,
    pub(super) answers_lost: u64,
    /// Datagrams that the clients' full sockets did not take, and those that they read.
    pub(super) clients_sockets_lost: u64,
    pub(super) clients_read: u64,
}

impl Way {
    fn read(pair: &Pair) -> Result<Self> {
        let [server, client] = [&pair.server, &pair.client].map(Datagrams::read);
        let (server, client) = (server?, client?);
        let softnet = fs::read_to_string("/proc/net/softnet_stat")?;
        let [clients_backlog_lost, server_backlog_lost] =
            [CLIENTS_CPU, SERVER_CPU].map(|cpu| dropped(&softnet, cpu).unwrap_or_default());
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
            clients_backlog_lost,
            server_backlog_lost,
            answers_lost: pair.lost_answers()?,
            clients_sockets_lost: client.lost,
            clients_read: client.read,
        })
    }

    fn since(&self, before: &Self) -> Self {
        let grown = |of: fn(&Self) -> u64| of(self).saturating_sub(of(before));
        Self {
            clients_sent: grown(|way| way.clients_sent),
            ring_lost_flood: grown(|way| way.ring_lost_flood),
            ring_lost_clients: grown(|way| way.ring_lost_clients),
            received: grown(|way| way.received),
            sockets_lost: grown(|way| way.sockets_lost),
            server_read: grown(|way| way.server_read),
            listeners_lost: grown(|way| way.listeners_lost),
            server_sent: grown(|way| way.server_sent),
            clients_backlog_lost: grown(|way| way.clients_backlog_lost),
            server_backlog_lost: grown(|way| way.server_backlog_lost),
            answers_lost: grown(|way| way.answers_lost),
            clients_sockets_lost: grown(|way| way.clients_sockets_lost),
            clients_read: grown(|way| way.clients_read),
        }
    }

    /// Returns the packets that the ring did not take.
    pub(super) const fn ring_lost(&self) -> u64 {
        self.ring_lost_flood + self.ring_lost_clients
    }

    /// Returns the packets that backlogs did not take.
    pub(super) const fn backlog_lost(&self) -> u64 {
        self.clients_backlog_lost + self.server_backlog_lost
    }
}

impl Counters {
    /// Reads them; the server's processes are a group.
    pub(super) fn read(pair: &Pair, server_group: u32, receiver: i32) -> Result<Self> {
        let server = processes_of(server_group)?;
        let stat = fs::read_to_string("/proc/stat")?;
        let cpu_time = |cpu| CpuTime::of(&stat, cpu).context("a strange /proc/stat");
        Ok(Self {
            way: Way::read(pair)?,
            server: of_ticks(server.iter().map(|(_, ticks)| ticks).sum())?,
            receiver: time_of(receiver)?,
            receiver_turns: of_thread(receiver),
            server_turns: of_processes(server.iter().map(|(process, _)| *process)),
            clients_cpu: cpu_time(CLIENTS_CPU)?,
            server_cpu: cpu_time(SERVER_CPU)?,
        })
    }

    /// Returns how much they have grown since.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            way: self.way.since(&before.way),
            server: self.server.saturating_sub(before.server),
            receiver: self.receiver.saturating_sub(before.receiver),
            receiver_turns: self.receiver_turns.since(&before.receiver_turns),
            server_turns: self.server_turns.since(&before.server_turns),
            clients_cpu: self.clients_cpu.since(&before.clients_cpu),
            server_cpu: self.server_cpu.since(&before.server_cpu),
        }
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
            let v4 = named(&snmp, "Udp:", name).with_context(|| format!("no {name}"))?;
            let v6 = snmp6_value(&snmp6, &format!("Udp6{name}")).unwrap_or_default();
            anyhow::Ok(v4 + v6)
        };
        Ok(Self {
            read: both("InDatagrams")?,
            sent: both("OutDatagrams")?,
            lost: both("RcvbufErrors")?,
            listeners_lost: named(&netstat, "TcpExt:", "ListenDrops").unwrap_or_default(),
        })
    }
}

/// How a CPU spent its time, in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTime {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl CpuTime {
    /// Reads a line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; guests'
    /// times are part of the first two.
    fn of(stat: &str, cpu: usize) -> Option<Self> {
        let name = format!("cpu{cpu}");
        let mut lines = stat.lines().map(str::split_whitespace);
        let numbers = lines.find_map(|mut words| (words.next()? == name).then_some(words))?;
        let times: Option<Vec<u64>> = numbers.take(8).map(|word| word.parse().ok()).collect();
        let times = times?;
        Some(Self {
            all: times.iter().sum(),
            idle: times.get(3)? + times.get(4)?,
            stolen: *times.get(7)?,
        })
    }

    const fn since(&self, before: &Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }

    /// Returns the percentages of time in which it had nothing to do, and in which the host ran
    /// something else.
    pub(super) fn idle_and_stolen(&self) -> [f64; 2] {
        let percent = |part| to_f64(part) * 100.0 / to_f64(self.all.max(1));
        [percent(self.idle), percent(self.stolen)]
    }
}

/// Returns a value of net/snmp, whose lines come in twos: names, and numbers.
fn named(snmp: &str, kind: &str, name: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter(|line| line.starts_with(kind));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|found| found == name)?;
    numbers.split_whitespace().nth(place)?.parse().ok()
}

/// Returns a value of net/snmp6, which has one a line.
fn snmp6_value(snmp6: &str, name: &str) -> Option<u64> {
    let mut lines = snmp6.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

/// Returns the packets that the backlog of a CPU dropped: the second column, in hexadecimal. The
/// thirteenth is the CPU's number.
fn dropped(softnet: &str, cpu: usize) -> Option<u64> {
    let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
    softnet.lines().find_map(|line| {
        let mut columns = line.split_whitespace();
        let dropped = number(columns.nth(1))?;
        (number(columns.nth(10))? == u64::try_from(cpu).ok()?).then_some(dropped)
    })
}

/// The process group, and the ticks in user and kernel mode, in what follows the name of a process
/// in its state file (proc_pid_stat(5)).
const GROUP: usize = 2;
const TICKS: [usize; 2] = [11, 12];

/// Returns the process group and the ticks of a process.
fn group_and_ticks(stat: &str) -> Option<(u32, u64)> {
    let fields: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = TICKS.map(|place| fields.get(place)?.parse::<u64>().ok());
    Some((fields.get(GROUP)?.parse().ok()?, ticks[0]? + ticks[1]?))
}

/// Returns the processes of a group, with their ticks.
fn processes_of(wanted: u32) -> Result<Vec<(i32, u64)>> {
    let processes = fs::read_dir("/proc")?.flatten();
    Ok(processes
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter_map(|process: i32| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            let (group, ticks) = group_and_ticks(&stat)?;
            (group == wanted).then_some((process, ticks))
        })
        .collect())
}

fn time_of(process: i32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, ticks) = group_and_ticks(&stat).context("a strange /proc/PID/stat")?;
    of_ticks(ticks)
}

fn of_ticks(ticks: u64) -> Result<Duration> {
    let a_second = sysconf(SysconfVar::CLK_TCK)?.context("no clock ticks")?;
    Ok(Duration::from_millis(
        ticks * 1000 / u64::try_from(a_second)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_lost() {
        let snmp = "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams \
                    RcvbufErrors\nUdp: 5 4 3 2 77\nUdpLite: RcvbufErrors\nUdpLite: 9\n";
        assert_eq!(named(snmp, "Udp:", "RcvbufErrors"), Some(77));
        assert_eq!(named(snmp, "Udp:", "Other"), None);
        let snmp6 = "Ip6InReceives \t 7\nUdp6RcvbufErrors \t 8\n";
        assert_eq!(snmp6_value(snmp6, "Udp6RcvbufErrors"), Some(8));
        assert_eq!(snmp6_value(snmp6, "Udp6Other"), None);
        let line = |lost: &str, cpu: &str| format!("ff {lost} 0 0 0 0 0 0 0 0 0 0 {cpu} 0 0\n");
        let softnet = line("0000000a", "00000000") + &line("00000010", "00000003");
        let found = [0, 1, 3].map(|cpu| dropped(&softnet, cpu));
        assert_eq!(found, [Some(10), None, Some(16)]);
    }

    #[test]
    fn reads_the_time_of_a_process_with_a_strange_name() {
        let stat = "77 (a) R (b) S 1 55 55 0 -1 4194304 9 0 0 0 120 34 0 0 20 0 1 0";
        assert_eq!(group_and_ticks(stat), Some((55, 154)));
        assert_eq!(group_and_ticks("77"), None);
    }

    #[test]
    fn reads_how_a_cpu_spent_its_time() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 4 0 0 50 7 7\ncpu1 1 1 1 1 1 1 1 1 1 1\n";
        let time = CpuTime::of(stat, 0).unwrap();
        assert_eq!(
            time.idle_and_stolen().map(f64::to_bits),
            [44.0, 50.0].map(f64::to_bits)
        );
        assert_eq!(CpuTime::of(stat, 2), None);
    }
}
