//! The rule of each window strategy as captures, with both engines and with packets on both sides
//! of every boundary. The expected values are computed by hand from the rules in
//! docs/strategies.md.

use anyhow::Result;

use crate::expected::{
    ExpectedVerdict::{Drop, Never, Pass},
    check,
};

const ONE: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const PACKETS: &str = "PacketsPerIPAddress";
const BYTES: &str = "BytesPerIPAddress";

/// The shortest frame in these tests, in bytes.
const SHORT: usize = 42;

#[test]
fn a_fixed_window_ends_a_period_after_its_first_packet() -> Result<()> {
    check(
        "limits: {PacketsPerIPAddress: {strategy: fixed-window, rate: 3/second}}\n",
        &[
            (0, ONE, SHORT, Pass(PACKETS, ONE, [2, 0, 1_000])),
            (500, ONE, SHORT, Pass(PACKETS, ONE, [1, 0, 500])),
            // The other source has its own window, which begins with its first packet.
            (600, OTHER, SHORT, Pass(PACKETS, OTHER, [2, 0, 1_000])),
            (700, ONE, SHORT, Pass(PACKETS, ONE, [0, 300, 300])),
            // A refused packet does not extend the window.
            (800, ONE, SHORT, Drop(PACKETS, ONE, [0, 200, 200])),
            (999, ONE, SHORT, Drop(PACKETS, ONE, [0, 1, 1])),
            // The window excludes its end.
            (1_000, ONE, SHORT, Pass(PACKETS, ONE, [2, 0, 1_000])),
            (1_600, OTHER, SHORT, Pass(PACKETS, OTHER, [2, 0, 1_000])),
            // The next window begins with a packet, not at the previous window's end.
            (2_700, ONE, SHORT, Pass(PACKETS, ONE, [2, 0, 1_000])),
        ],
    )
}

#[test]
fn what_a_fixed_window_refuses_fills_it() -> Result<()> {
    check(
        "limits: {BytesPerIPAddress: {strategy: fixed-window, count: 2000, period: 500ms}}\n",
        &[
            (0, ONE, 1_000, Pass(BYTES, ONE, [1_000, 0, 500])),
            (100, ONE, 1_001, Drop(BYTES, ONE, [0, 400, 400])),
            // It would fit without the refused packet before it.
            (100, ONE, SHORT, Drop(BYTES, ONE, [0, 400, 400])),
            (500, ONE, SHORT, Pass(BYTES, ONE, [1_958, 0, 500])),
            // A packet that can never pass also fills the window.
            (600, ONE, 2_001, Never(BYTES, ONE, [0, 400])),
            (999, ONE, SHORT, Drop(BYTES, ONE, [0, 1, 1])),
            (1_000, ONE, 2_000, Pass(BYTES, ONE, [0, 500, 500])),
        ],
    )
}

#[test]
fn a_moving_window_looks_at_its_oldest_packet() -> Result<()> {
    check(
        "limits: {PacketsPerIPAddress: {strategy: moving-window, rate: 2/second}}\n",
        &[
            (0, ONE, SHORT, Pass(PACKETS, ONE, [1, 0, 1_000])),
            (400, ONE, SHORT, Pass(PACKETS, ONE, [0, 600, 1_000])),
            // A refused packet is not counted.
            (500, ONE, SHORT, Drop(PACKETS, ONE, [0, 500, 900])),
            (999, ONE, SHORT, Drop(PACKETS, ONE, [0, 1, 401])),
            // A packet counts for one period, excluding its end.
            (1_000, ONE, SHORT, Pass(PACKETS, ONE, [0, 400, 1_000])),
            (1_399, ONE, SHORT, Drop(PACKETS, ONE, [0, 1, 601])),
            (1_400, ONE, SHORT, Pass(PACKETS, ONE, [0, 600, 1_000])),
            (2_399, ONE, SHORT, Pass(PACKETS, ONE, [0, 1, 1_000])),
            (9_000, ONE, SHORT, Pass(PACKETS, ONE, [1, 0, 1_000])),
        ],
    )
}

/// The ring buffer of times wraps around.
#[test]
fn a_moving_window_goes_round() -> Result<()> {
    // 128 packets at once and one too many, and the same again each second.
    let round = |start: u64| {
        let passed = (0..128).map(move |n| {
            let left = 127 - n;
            let retry_in = if left == 0 { 1_000 } else { 0 };
            (
                start,
                ONE,
                SHORT,
                Pass(PACKETS, ONE, [left, retry_in, 1_000]),
            )
        });
        passed.chain([
            (start, ONE, SHORT, Drop(PACKETS, ONE, [0, 1_000, 1_000])),
            (start + 999, ONE, SHORT, Drop(PACKETS, ONE, [0, 1, 1])),
        ])
    };
    let rows: Vec<_> = round(0).chain(round(1_000)).chain(round(2_000)).collect();
    check(
        "limits: {PacketsPerIPAddress: {strategy: moving-window, rate: 128/second}}\n",
        &rows,
    )
}

#[test]
fn a_sliding_window_counter_weighs_the_bucket_before() -> Result<()> {
    let reported = |at_ms, reported| (at_ms, ONE, SHORT, reported);
    let first = (1..=9).map(|n| reported(0, Pass(PACKETS, ONE, [10 - n, 0, 2_000])));
    let rows = first.chain([
        // The next packet passes after a tenth of the next window.
        reported(0, Pass(PACKETS, ONE, [0, 1_100, 2_000])),
        reported(999, Drop(PACKETS, ONE, [0, 101, 1_001])),
        // At the start of the next window: all ten count.
        reported(1_000, Drop(PACKETS, ONE, [0, 100, 1_000])),
        reported(1_099, Drop(PACKETS, ONE, [0, 1, 901])),
        // Nine of the previous ten, and this packet.
        reported(1_100, Pass(PACKETS, ONE, [0, 100, 1_900])),
        // In the middle: five of the ten.
        reported(1_500, Pass(PACKETS, ONE, [3, 0, 1_500])),
        reported(1_500, Pass(PACKETS, ONE, [2, 0, 1_500])),
        reported(1_500, Pass(PACKETS, ONE, [1, 0, 1_500])),
        reported(1_500, Pass(PACKETS, ONE, [0, 100, 1_500])),
        // Refused, and not counted.
        reported(1_500, Drop(PACKETS, ONE, [0, 100, 1_500])),
        reported(1_599, Drop(PACKETS, ONE, [0, 1, 1_401])),
        // Near the end: a thousandth of ten, rounded up to one.
        reported(1_999, Pass(PACKETS, ONE, [3, 0, 1_001])),
        // At the start of the third window: the six of the second count.
        reported(2_000, Pass(PACKETS, ONE, [3, 0, 2_000])),
        // After an empty window the count restarts at zero.
        reported(4_000, Pass(PACKETS, ONE, [9, 0, 2_000])),
    ]);
    check(
        "limits: {PacketsPerIPAddress: {strategy: sliding-window-counter, rate: 10/second}}\n",
        &rows.collect::<Vec<_>>(),
    )
}

#[test]
fn a_sliding_window_counter_never_counts_what_never_passes() -> Result<()> {
    check(
        "limits: {BytesPerIPAddress: {strategy: sliding-window-counter, count: 2000, \
         period: 500ms}}\n",
        &[
            (0, ONE, 2_001, Never(BYTES, ONE, [2_000, 0])),
            // All at once; the same again only when the next window is over, too.
            (0, ONE, 2_000, Pass(BYTES, ONE, [0, 1_000, 1_000])),
            (750, ONE, 1_004, Drop(BYTES, ONE, [1_000, 1, 250])),
            (750, ONE, 1_000, Pass(BYTES, ONE, [0, 250, 750])),
            (999, ONE, 2_001, Never(BYTES, ONE, [996, 501])),
        ],
    )
}

/// If one rate denies a packet, no rate is charged, except a fixed window that denies it itself.
#[test]
fn several_rates_are_judged_together() -> Result<()> {
    const SECOND: &str = PACKETS;
    const MINUTE: &str = "PacketsPerIPAddress#2";
    let config = |strategy| {
        format!(
            "limits: {{PacketsPerIPAddress: {{strategy: {strategy}, rate: 2/second; 5/minute}}}}\n"
        )
    };
    let both = |at_ms, reported| (at_ms, ONE, SHORT, reported);
    check(
        &config("moving-window"),
        &[
            both(0, Pass(SECOND, ONE, [1, 0, 1_000])),
            both(0, Pass(SECOND, ONE, [0, 1_000, 1_000])),
            // Five packets within a second, not charged to the minute's rate.
            both(500, Drop(SECOND, ONE, [0, 500, 500])),
            both(500, Drop(SECOND, ONE, [0, 500, 500])),
            both(999, Drop(SECOND, ONE, [0, 1, 1])),
            both(1_000, Pass(SECOND, ONE, [1, 0, 1_000])),
            both(1_000, Pass(SECOND, ONE, [0, 1_000, 1_000])),
            both(2_000, Pass(MINUTE, ONE, [0, 58_000, 60_000])),
            both(59_999, Drop(MINUTE, ONE, [0, 1, 2_001])),
            // The second's rate is not charged for packets that the minute's rate denied.
            both(60_000, Pass(SECOND, ONE, [1, 0, 1_000])),
        ],
    )?;
    check(
        &config("fixed-window"),
        &[
            both(0, Pass(SECOND, ONE, [1, 0, 1_000])),
            both(0, Pass(SECOND, ONE, [0, 1_000, 1_000])),
            both(500, Drop(SECOND, ONE, [0, 500, 500])),
            both(1_000, Pass(SECOND, ONE, [1, 0, 1_000])),
            both(1_000, Pass(SECOND, ONE, [0, 1_000, 1_000])),
            both(2_000, Pass(MINUTE, ONE, [0, 58_000, 58_000])),
            both(2_000, Drop(MINUTE, ONE, [0, 58_000, 58_000])),
            both(60_000, Pass(SECOND, ONE, [1, 0, 1_000])),
        ],
    )
}
