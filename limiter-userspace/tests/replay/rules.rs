//! Boulder's rules as captures, with both engines: several tokens at once, requests that can never
//! pass, the batch, overrides, and transactions that only spend. The expected values are computed
//! by hand from Boulder's formulas: t = max(now, TAT), new = t + cost × e, allowed when now ≥ new −
//! burst × e.

use anyhow::Result;
use serde_json::json;
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::{
    command::replay,
    expected::{
        ExpectedVerdict::{Blocked, Drop, Excluded, Never, Pass, Unlimited},
        MS, check,
    },
};

const ONE: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const RANGE: &str = "10.0.0.0/24";

#[test]
fn spending_several_tokens() -> Result<()> {
    const BYTES: &str = "BytesPerIPAddress";
    check(
        // One token a millisecond.
        "limits: {BytesPerIPAddress: {burst: 2000, count: 1000, period: 1s}}\n",
        &[
            (0, ONE, 500, Pass(BYTES, ONE, [1_500, 0, 500])),
            // They pass, but as many again must wait.
            (0, ONE, 1_000, Pass(BYTES, ONE, [500, 500, 1_500])),
            (0, ONE, 600, Drop(BYTES, ONE, [500, 100, 1_500])),
            // Exact to the millisecond.
            (99, ONE, 600, Drop(BYTES, ONE, [599, 1, 1_401])),
            (100, ONE, 600, Pass(BYTES, ONE, [0, 600, 2_000])),
            (100, ONE, 60, Drop(BYTES, ONE, [0, 60, 2_000])),
            // The other source has its own bucket, which is full.
            (100, OTHER, 60, Pass(BYTES, OTHER, [1_940, 0, 60])),
            // The bucket has just become full, and is spent at once.
            (2_100, ONE, 2_000, Pass(BYTES, ONE, [0, 2_000, 2_000])),
            // One more than a full bucket holds.
            (4_200, ONE, 2_001, Never(BYTES, ONE, [2_000, 0])),
            // A long idle bucket holds no more than its burst.
            (90_000, ONE, 42, Pass(BYTES, ONE, [1_958, 0, 42])),
        ],
    )
}

/// The output shows the strictest limit: denied before allowed, then the longer wait, then fewer
/// tokens left. If one limit denies, no limit is charged.
#[test]
fn the_batch() -> Result<()> {
    const ADDRESS: &str = "PacketsPerIPAddress";
    const NETWORK: &str = "PacketsPerIPv4Range";
    check(
        "limits:\n  PacketsPerIPAddress: {burst: 3, count: 1, period: 1s}\n  \
         PacketsPerIPv4Range: {burst: 4, count: 1, period: 1s}\n",
        &[
            (0, ONE, 60, Pass(ADDRESS, ONE, [2, 0, 1_000])),
            (0, ONE, 60, Pass(ADDRESS, ONE, [1, 0, 2_000])),
            (0, ONE, 60, Pass(ADDRESS, ONE, [0, 1_000, 3_000])),
            // Not charged to the range, which has one token left,
            (0, ONE, 60, Drop(ADDRESS, ONE, [0, 1_000, 3_000])),
            (0, OTHER, 60, Pass(NETWORK, RANGE, [0, 1_000, 4_000])),
            // and this drop is not charged to the address.
            (0, OTHER, 60, Drop(NETWORK, RANGE, [0, 1_000, 4_000])),
            (1_000, OTHER, 60, Pass(NETWORK, RANGE, [0, 1_000, 4_000])),
            (2_000, OTHER, 60, Pass(NETWORK, RANGE, [0, 1_000, 4_000])),
            // Three packets were charged to this bucket in all, and two tokens have come back.
            (6_000, OTHER, 60, Pass(ADDRESS, OTHER, [2, 0, 1_000])),
        ],
    )?;
    check(
        "limits:\n  PacketsPerIPAddress: {burst: 1, count: 1, period: 2s}\n  \
         PacketsPerIPv4Range: {burst: 1, count: 1, period: 1s}\n",
        &[
            (0, ONE, 60, Pass(ADDRESS, ONE, [0, 2_000, 2_000])),
            // Both limits deny: the longer wait is shown.
            (0, ONE, 60, Drop(ADDRESS, ONE, [0, 2_000, 2_000])),
            (500, OTHER, 60, Drop(NETWORK, RANGE, [0, 500, 500])),
            (1_500, ONE, 60, Drop(ADDRESS, ONE, [0, 500, 500])),
            (2_000, ONE, 60, Pass(ADDRESS, ONE, [0, 2_000, 2_000])),
        ],
    )
}

/// The id's override, else the default, else the limit does not apply.
#[test]
fn overrides() -> Result<()> {
    const LIMIT: &str = "PacketsPerIPAddress";
    let overrides = "overrides: {'PacketsPerIPAddress:10.0.0.2': \
                     {burst: 2, count: 1, period: 1s}}\n";
    let default = "limits: {PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}}\n";
    let of_other = || {
        [
            (0, OTHER, 60, Pass(LIMIT, OTHER, [1, 0, 1_000])),
            (0, OTHER, 60, Pass(LIMIT, OTHER, [0, 1_000, 2_000])),
            (0, OTHER, 60, Drop(LIMIT, OTHER, [0, 1_000, 2_000])),
        ]
    };
    let mut rows = vec![
        (0, ONE, 60, Pass(LIMIT, ONE, [0, 1_000, 1_000])),
        (0, ONE, 60, Drop(LIMIT, ONE, [0, 1_000, 1_000])),
    ];
    rows.extend(of_other());
    check(&format!("{default}{overrides}"), &rows)?;
    let mut rows = vec![(0, ONE, 60, Unlimited)];
    rows.extend(of_other());
    check(overrides, &rows)
}

/// A limit that observes is charged as long as it has tokens, and never drops.
#[test]
fn spending_only() -> Result<()> {
    const ADDRESS: &str = "PacketsPerIPAddress";
    let config = "limits:\n  \
        PacketsPerIPAddress: {burst: 3, count: 1, period: 1s}\n  \
        PacketsPerIPv4Range: {burst: 1, count: 1, period: 1s, mode: observe}\n";
    let capture = |times: &[u64]| {
        let frame = Frame::new(ONE.parse()?, "10.9.9.9".parse()?).udp(1, 2, b"x")?;
        let packets = times.iter().map(|at| Packet::whole(at * MS, frame.clone()));
        Ok::<_, anyhow::Error>(PCAP.write(&packets.collect::<Vec<_>>()))
    };
    for engine in ["native", "kernel"] {
        let capture = capture(&[0, 0, 0, 0, 1_000])?;
        let replayed = replay(config, &capture, false, &["--json", "--engine", engine])?;
        assert!(replayed.success, "{}", replayed.stderr);
        let mut lines = replayed.lines()?;
        let summary = lines.pop().unwrap_or_default();
        let reported: Vec<_> = lines
            .iter()
            .map(|line| json!([line["verdict"], line["limit"], line["would_drop"]]))
            .collect();
        let would_drop = json!(["PacketsPerIPv4Range"]);
        assert_eq!(
            reported,
            [
                json!(["pass", ADDRESS, null]),
                json!(["pass", ADDRESS, would_drop]),
                json!(["pass", ADDRESS, would_drop]),
                // Another limit drops the packet, so the observing one is not consulted.
                json!(["drop", ADDRESS, null]),
                json!(["pass", ADDRESS, null]),
            ],
            "{engine}"
        );
        assert_eq!(
            summary["summary"]["by_limit"]["PacketsPerIPv4Range"],
            json!({"passed": 2, "dropped": 0, "would_drop": 2})
        );
    }
    Ok(())
}

/// Excluded before blocked, blocked before the limits. A limit with only `block` needs no rate; a
/// limit's `exclude` leaves other limits alone.
#[test]
fn lists() -> Result<()> {
    const PER_RANGE: &str = "PacketsPerIPv4Range";
    const PER_ADDRESS: &str = "PacketsPerIPAddress";
    let config = "
lists:
  - {name: one, cidr: 10.0.0.1}
  - {name: two, cidr: 10.0.0.2}
  - {name: three, cidr: 10.0.0.3}
  - {name: all, cidr: 10.0.0.0/30}
exclude: one
block: [one, two]
limits:
  PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, exclude: [all]}
  PacketsPerIPv4Range: {burst: 2, count: 1, period: 1s}
  Blocking: {id: total, cost: packets, match: {destination-port: 2}, block: three}
";
    check(
        config,
        &[
            (0, ONE, 60, Excluded),
            (0, OTHER, 60, Blocked(None)),
            (0, "10.0.0.3", 60, Blocked(Some("Blocking"))),
            (0, "10.0.0.0", 60, Pass(PER_RANGE, RANGE, [1, 0, 1_000])),
            (0, "10.0.0.0", 60, Pass(PER_RANGE, RANGE, [0, 1_000, 2_000])),
            (0, "10.0.0.0", 60, Drop(PER_RANGE, RANGE, [0, 1_000, 2_000])),
            (0, ONE, 60, Excluded),
            (
                1_000,
                "10.0.0.4",
                60,
                Pass(PER_ADDRESS, "10.0.0.4", [0, 1_000, 1_000]),
            ),
        ],
    )
}
