//! Selects the losses of the host that move a limit's rate.

use limiter_common::limit::Cost;
use limiter_policy::policy::{Limit, Match, PortRange};
use limiter_protocol::OverloadKind;

use super::{CpuTimes, OverloadCounters, SocketLosses, Work};

/// The host's losses so far, and its CPUs' times.
#[derive(Clone, Debug, Default)]
pub struct HostLosses {
    /// The host as a whole.
    pub overload: OverloadCounters,
    /// Single sockets; `None`: no limit needed them, or they could not be read.
    pub sockets: Option<SocketLosses>,
    /// All CPUs.
    pub cpus: CpuTimes,
}

/// The losses that lower a limit's rate: only losses that may come from packets that it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossFilter {
    udp: bool,
    tcp: bool,
    /// The destination ports that it counts; empty: all.
    ports: Vec<PortRange>,
}

impl LossFilter {
    /// Returns the losses that matter to a limit.
    #[must_use]
    pub fn of(limit: &Limit) -> Self {
        let protocols = limit.protocols();
        let counts = |protocol| protocols.is_empty() || protocols.contains(&protocol);
        let of_connections = matches!(limit.cost, Cost::NewConnections | Cost::Connections);
        Self {
            udp: counts(Match::UDP) && !of_connections,
            tcp: counts(Match::TCP),
            ports: limit.matching.destination_ports.clone(),
        }
    }

    /// Returns whether overload of that kind matters to the limit.
    #[must_use]
    pub const fn counts(&self, kind: OverloadKind) -> bool {
        match kind {
            OverloadKind::ReceiveBuffer => self.udp,
            OverloadKind::ListenQueue => self.tcp,
            OverloadKind::Backlog | OverloadKind::FullCpu => true,
        }
    }

    /// Returns the ports of the sockets that must be read one by one.
    #[must_use]
    pub fn ports(&self) -> &[PortRange] {
        if self.udp { &self.ports } else { &[] }
    }

    /// Returns whether packets that matter to the limit were lost between `before` and `now`, in the order of
    /// [`OverloadKind::ALL`].
    ///
    /// A full receive buffer counts only if a socket on the limit's ports lost something too. So neither an unread
    /// socket elsewhere nor wrong checksums, which sockets count as well, lower the rate alone. Where single sockets
    /// are unknown, a full receive buffer counts. A full CPU counts only if it took packets of the limit, which
    /// refused some meanwhile: without a flood, a busy host lowers nothing.
    #[must_use]
    pub fn losses(
        &self,
        before: &HostLosses,
        now: &HostLosses,
        work: &Work,
    ) -> [bool; OverloadKind::ALL.len()] {
        let more = |counter: fn(&OverloadCounters) -> u64| {
            counter(&now.overload) > counter(&before.overload)
        };
        let is_ours = || match (&now.sockets, &before.sockets) {
            _ if self.ports.is_empty() => true,
            (Some(now), Some(before)) => now.have_more_on(&self.ports, before),
            _ => true,
        };
        let is_lost = |kind| match kind {
            OverloadKind::ReceiveBuffer => more(|overload| overload.receive_buffer) && is_ours(),
            OverloadKind::ListenQueue => more(|overload| overload.listen_queue),
            OverloadKind::Backlog => more(|overload| overload.backlog),
            OverloadKind::FullCpu => {
                let is_full = |cpu: &usize| now.cpus.is_full(*cpu, &before.cpus);
                work.refused && work.cpus.iter().any(is_full)
            }
        };
        OverloadKind::ALL.map(|kind| self.counts(kind) && is_lost(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::total;

    fn filter(more: &str) -> LossFilter {
        LossFilter::of(&total(&format!("count: auto{more}")).limits[0])
    }

    /// A limit's work when no CPU matters.
    fn idle() -> Work {
        Work::default()
    }

    fn seen(receive_buffer: u64, listen_queue: u64, backlog: u64) -> HostLosses {
        HostLosses {
            overload: OverloadCounters {
                receive_buffer,
                listen_queue,
                backlog,
            },
            sockets: Some(SocketLosses::default()),
            ..HostLosses::default()
        }
    }

    #[test]
    fn a_limit_hears_what_its_packets_may_cause() {
        let before = seen(1, 1, 1);
        let heard = |more: &str| {
            let filter = filter(more);
            let after = |after| filter.losses(&before, &after, &idle());
            assert_eq!(after(before.clone()), [false; 4], "{more}");
            let alone = [seen(2, 1, 1), seen(1, 2, 1), seen(1, 1, 2)].map(after);
            let together = after(seen(2, 2, 2));
            for (kind, heard) in alone.into_iter().enumerate() {
                let mut expected = [false; 4];
                expected[kind] = together[kind];
                assert_eq!(heard, expected, "{more}");
            }
            together
        };
        assert_eq!(heard(""), [true, true, true, false]);
        assert_eq!(
            heard(", match: {protocol: udp}"),
            [true, false, true, false]
        );
        assert_eq!(
            heard(", match: {protocol: tcp}"),
            [false, true, true, false]
        );
        let syn = ", match: {tcp-flags: 'syn,!ack'}";
        assert_eq!(heard(syn), [false, true, true, false]);
        let icmp = ", match: {protocol: icmp}";
        assert_eq!(heard(icmp), [false, false, true, false]);
        let pings = ", match: {icmp-type: echo-request}";
        assert_eq!(heard(pings), [false, false, true, false]);
        // None of its sockets lost anything.
        let ported = ", match: {protocol: udp, destination-port: 53}";
        assert_eq!(heard(ported), [false, false, true, false]);
        assert_eq!(filter(ported).ports(), [53..=53]);
        let tcp = filter(", match: {protocol: tcp, destination-port: 53}");
        assert!(tcp.ports().is_empty());
        // The sockets could not be read.
        let unread = HostLosses {
            sockets: None,
            ..seen(2, 1, 1)
        };
        let heard = filter(ported).losses(&before, &unread, &idle());
        assert_eq!(heard, [true, false, false, false]);
    }

    /// Sockets count packets with wrong checksums as lost, too, although no buffer was full.
    #[test]
    fn wrong_checksums_lower_nothing() {
        let lost = |receive_buffer, by_socket| HostLosses {
            sockets: Some(SocketLosses::from([(71, (53, by_socket))])),
            ..seen(receive_buffer, 1, 1)
        };
        let before = lost(1, 5);
        for more in ["", ", match: {protocol: udp, destination-port: 53}"] {
            let filter = filter(more);
            let after = |after| filter.losses(&before, &after, &idle());
            assert_eq!(after(lost(1, 9)), [false; 4], "{more}");
            assert_eq!(after(lost(2, 9)), [true, false, false, false], "{more}");
        }
    }

    /// A busy host lowers no rate, unless the limit refuses packets that a full CPU takes.
    #[test]
    fn a_full_cpu_counts_in_a_flood() {
        let at = |stat| HostLosses {
            cpus: CpuTimes::parse(stat),
            ..HostLosses::default()
        };
        let before = at("cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n");
        let now = at("cpu0 0 0 25 0 0 0 0 0\ncpu1 0 0 1 24 0 0 0 0\n");
        let filter = filter("");
        let heard = |refused, cpus: &[usize]| {
            let cpus = cpus.to_vec();
            filter.losses(&before, &now, &Work { refused, cpus })
        };
        let full = [false, false, false, true];
        assert_eq!(heard(true, &[0]), full);
        assert_eq!(heard(true, &[1, 0]), full);
        for calm in [heard(false, &[0]), heard(true, &[1]), heard(true, &[])] {
            assert_eq!(calm, [false; 4]);
        }
    }
}
