//! What the kernel counts: where packets were lost, and who used the CPU.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use nix::unistd::{SysconfVar, sysconf};
use testbed::Pair;

/// Counters at one time, to be compared with later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Frames that the veth pair's ring did not take.
    pub(super) ring: u64,
    /// Frames that reached the server's interface.
    pub(super) received: u64,
    /// Packets that the backlog of a CPU did not take.
    pub(super) backlog: u64,
    /// Datagrams that a full socket did not take.
    pub(super) sockets: u64,
    /// The CPU time of the server.
    pub(super) server: Duration,
    /// The CPU time of the thread that receives.
    pub(super) receiver: Duration,
}

impl Counters {
    /// Reads them; the server's processes are a group.
    pub(super) fn read(pair: &Pair, server_group: u32, receiver: i32) -> Result<Self> {
        let read = |path: &'static str| {
            pair.server
                .enter(|| fs::read_to_string(path).with_context(|| format!("cannot read {path}")))
        };
        let snmp = read("/proc/thread-self/net/snmp")?;
        let snmp6 = read("/proc/thread-self/net/snmp6")?;
        let softnet = fs::read_to_string("/proc/net/softnet_stat")?;
        let sockets = named(&snmp, "Udp:", "RcvbufErrors").context("no RcvbufErrors")?
            + snmp6_value(&snmp6, "Udp6RcvbufErrors").unwrap_or_default();
        Ok(Self {
            ring: pair.lost()?,
            received: pair.received()?,
            backlog: dropped(&softnet),
            sockets,
            server: time_of_group(server_group)?,
            receiver: time_of(receiver)?,
        })
    }

    /// Returns how much they have grown since.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            ring: self.ring.saturating_sub(before.ring),
            received: self.received.saturating_sub(before.received),
            backlog: self.backlog.saturating_sub(before.backlog),
            sockets: self.sockets.saturating_sub(before.sockets),
            server: self.server.saturating_sub(before.server),
            receiver: self.receiver.saturating_sub(before.receiver),
        }
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

/// Returns the packets that all CPUs' backlogs dropped: the second column, in hexadecimal.
fn dropped(softnet: &str) -> u64 {
    let columns = softnet
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    columns
        .filter_map(|column| u64::from_str_radix(column, 16).ok())
        .sum()
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

fn time_of_group(wanted: u32) -> Result<Duration> {
    let processes = fs::read_dir("/proc")?.flatten();
    let ticks: u64 = processes
        .filter(|process| process.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|process| fs::read_to_string(process.path().join("stat")).ok())
        .filter_map(|stat| group_and_ticks(&stat))
        .filter(|(group, _)| *group == wanted)
        .map(|(_, ticks)| ticks)
        .sum();
    of_ticks(ticks)
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
        assert_eq!(
            dropped("000000ff 0000000a 00000000\n00000001 00000010 0\n"),
            26
        );
    }

    #[test]
    fn reads_the_time_of_a_process_with_a_strange_name() {
        let stat = "77 (a) R (b) S 1 55 55 0 -1 4194304 9 0 0 0 120 34 0 0 20 0 1 0";
        assert_eq!(group_and_ticks(stat), Some((55, 154)));
        assert_eq!(group_and_ticks("77"), None);
    }
}
