//! Boulder's worked example, corrected, as a capture: 20 per second, burst 20.

use anyhow::Result;
use serde_json::json;
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

const CONFIG: &str = "limits: {PacketsPerIPAddress: {burst: 20, count: 20, period: 1s}}\n";

const MS: u64 = 1_000_000;

#[test]
fn twenty_per_second() -> Result<()> {
    let frame = Frame::new("10.0.0.2".parse()?, "10.0.0.1".parse()?).udp(1, 2, b"newFoo")?;
    // Time, whether the packet passes, `remaining`, `retry_in` and `reset_in`; times in
    // milliseconds.
    let mut expected = vec![(0, true, 19, 0, 50), (5, true, 18, 0, 95)];
    for request in 0..18_u64 {
        let at = 5 + request * 44 / 17;
        let reset_in = (request + 3) * 50 - at;
        let remaining = (1_000 - reset_in) / 50;
        let retry_in = (reset_in + 50).saturating_sub(1_000);
        expected.push((at, true, remaining, retry_in, reset_in));
    }
    expected.extend([
        (49, false, 0, 1, 951),
        (50, true, 0, 50, 1_000),
        (99, false, 0, 1, 951),
        (100, true, 0, 50, 1_000),
        (1_100, true, 19, 0, 50),
    ]);
    let packets: Vec<_> = expected
        .iter()
        .map(|(at, ..)| Packet::whole(7_000 * MS + at * MS, frame.clone()))
        .collect();
    let lines: Vec<_> = (1..)
        .zip(&expected)
        .map(|(n, (at, passes, remaining, retry_in, reset_in))| {
            json!({
                "n": n,
                "t_ns": at * MS,
                "verdict": if *passes { "pass" } else { "drop" },
                "reason": if *passes { "within_limits" } else { "over_limit" },
                "limit": "PacketsPerIPAddress",
                "id": "10.0.0.2",
                "remaining": remaining,
                "retry_in_ns": retry_in * MS,
                "reset_in_ns": reset_in * MS,
            })
        })
        .collect();
    let capture = PCAP.write(&packets);
    for engine in ["native", "kernel"] {
        let replayed = replay(CONFIG, &capture, false, &["--json", "--engine", engine])?;
        assert!(replayed.success, "{}", replayed.stderr);
        let mut found = replayed.lines()?;
        let summary = found.pop().unwrap_or_default();
        assert_eq!(found, lines, "{engine}");
        let summary = &summary["summary"];
        assert_eq!(summary["packets"], 25);
        assert_eq!(summary["passed"], 23);
        assert_eq!(summary["dropped"], 2);
        assert_eq!(summary["by_reason"]["over_limit"], 2);
        let by_limit = json!({"PacketsPerIPAddress": {"passed": 23, "dropped": 2}});
        assert_eq!(summary["by_limit"], by_limit);
    }
    Ok(())
}
