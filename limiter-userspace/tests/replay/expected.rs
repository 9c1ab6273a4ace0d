//! Checks the replay's output, packet by packet, against a table.

use anyhow::Result;
use serde_json::{Value, json};
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use self::ExpectedVerdict::{Blocked, Drop, Excluded, Never, Pass, Unlimited};
use crate::command::replay;

pub(crate) const MS: u64 = 1_000_000;

/// A packet: its time in milliseconds, source and length, and the expected output.
pub(crate) type Row = (u64, &'static str, usize, ExpectedVerdict);

pub(crate) enum ExpectedVerdict {
    /// The limit and its id; then `remaining`, `retry_in` and `reset_in`, in tokens and
    /// milliseconds.
    Pass(&'static str, &'static str, [u64; 3]),
    Drop(&'static str, &'static str, [u64; 3]),
    /// The limit and its id; `remaining` and `reset_in`.
    Never(&'static str, &'static str, [u64; 2]),
    /// No limit applies.
    Unlimited,
    /// A list excludes the source.
    Excluded,
    /// A list blocks the source, globally or in one limit.
    Blocked(Option<&'static str>),
}

impl ExpectedVerdict {
    fn line(&self, n: usize, at_ms: u64) -> Value {
        let (verdict, reason) = match self {
            Pass(..) => ("pass", "within_limits"),
            Drop(..) => ("drop", "over_limit"),
            Never(..) => ("drop", "larger_than_burst"),
            Unlimited => ("pass", "unlimited"),
            Excluded => ("pass", "excluded"),
            Blocked(_) => ("drop", "blocked_list"),
        };
        let (limit, id, remaining, retry_in, reset_in) = match *self {
            Pass(limit, id, [remaining, retry_in, reset_in])
            | Drop(limit, id, [remaining, retry_in, reset_in]) => (
                Some(limit),
                Some(id),
                Some(remaining),
                Some(retry_in),
                Some(reset_in),
            ),
            Never(limit, id, [remaining, reset_in]) => {
                (Some(limit), Some(id), Some(remaining), None, Some(reset_in))
            }
            Blocked(limit) => (limit, None, None, None, None),
            Unlimited | Excluded => (None, None, None, None, None),
        };
        json!({
            "n": n,
            "t_ns": at_ms * MS,
            "verdict": verdict,
            "reason": reason,
            "limit": limit,
            "id": id,
            "remaining": remaining,
            "retry_in_ns": retry_in.map(|ms| ms * MS),
            "reset_in_ns": reset_in.map(|ms| ms * MS),
        })
    }
}

/// Replays the packets under a configuration, with both engines, and compares the output of each.
pub(crate) fn check(config: &str, rows: &[Row]) -> Result<()> {
    let packets = rows.iter().map(|(at_ms, source, length, _)| {
        // Ethernet, IPv4 and UDP.
        let payload = vec![0; length - 42];
        let frame = Frame::new(source.parse()?, "10.9.9.9".parse()?).udp(1, 2, &payload)?;
        Ok(Packet::whole(7_000 * MS + at_ms * MS, frame))
    });
    let capture = PCAP.write(&packets.collect::<Result<Vec<_>>>()?);
    for engine in ["native", "kernel"] {
        let replayed = replay(config, &capture, false, &["--json", "--engine", engine])?;
        assert!(replayed.success, "{}", replayed.stderr);
        let lines = replayed.lines()?;
        assert_eq!(lines.len(), rows.len() + 1, "{engine}");
        for (n, ((at_ms, _, _, reported), line)) in (1..).zip(rows.iter().zip(&lines)) {
            assert_eq!(*line, reported.line(n, *at_ms), "{engine}");
        }
    }
    Ok(())
}
