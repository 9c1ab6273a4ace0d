//! Whether a source may have become proven since the last check: much cheaper than a scan of all sources.

use std::fs;

use limiter_datapath::kernel::Datapath;

/// The kernel's counters of this network namespace: its handshakes prove sources.
const COUNTS: &str = "/proc/self/net/snmp";

/// The counters at a check.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ProofCounters {
    /// TCP connections opened, in either direction; `None`: the kernel does not report them.
    opened: Option<u64>,
    /// DNS queries with a checked cookie.
    cookies: u64,
    /// The generation of the policy in force.
    generation: u64,
}

/// The state of the last check.
#[derive(Default)]
pub(super) struct Openings {
    last: Option<ProofCounters>,
    /// Whether to report new proofs once more: a connection is counted before its handshake has ended.
    again: bool,
}

impl Openings {
    /// Returns whether a source may have become proven since the last call, or the policy has changed. It
    /// may miss a source with a slow handshake.
    pub(super) fn are_new(&mut self, datapath: &Datapath) -> bool {
        let checks = datapath.cookie_checks().into_iter().flatten();
        let counters = ProofCounters {
            opened: (fs::read_to_string(COUNTS).ok()).and_then(|text| opened(&text)),
            cookies: checks.map(|(_, count)| count).sum(),
            generation: datapath.manifest().generation,
        };
        let is_new = self.last.replace(counters) != Some(counters) || counters.opened.is_none();
        let again = std::mem::replace(&mut self.again, is_new);
        is_new || again
    }
}

/// Reads the number of opened connections.
fn opened(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let fields = names.split(' ').zip(values.split(' '));
    let counts = fields.filter(|(name, _)| matches!(*name, "ActiveOpens" | "PassiveOpens"));
    counts
        .map(|(_, value)| value.parse::<u64>().ok())
        .sum::<Option<u64>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted() {
        let text = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
                    Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens AttemptFails\n\
                    Tcp: 1 -1 30 12 5\nUdp: InDatagrams\nUdp: 7\n";
        assert_eq!(opened(text), Some(42));
        assert_eq!(opened("Ip: Forwarding\nIp: 1\n"), None);
        let own = fs::read_to_string(COUNTS).unwrap();
        assert!(opened(&own).is_some(), "{own}");
    }
}
