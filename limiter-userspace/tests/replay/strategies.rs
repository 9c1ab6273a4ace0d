//! Each window strategy's rule as captures, through both engines: what is told of every packet, at
//! both sides of every boundary. Expected by hand, from the rules of docs/strategies.md.

use anyhow::Result;

use crate::told::{
    Told::{Drop, Never, Pass},
    check,
};

const ONE: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const PACKETS: &str = "PacketsPerIPAddress";
const BYTES: &str = "BytesPerIPAddress";

/// The shortest frame that a test sends.
const SHORT: usize = 42;

#[test]
fn a_fixed_window_ends_a_period_after_its_first_packet() -> Result<()> {
    check(
        "limits: {PacketsPerIPAddress: {strategy: fixed-window, rate: 3/second}}\n",
        &[
            (0, ONE, SHORT, Pass(PACKETS, ONE, [2, 0, 1_000])),
            (500, ONE, SHORT, Pass(PACKETS, ONE, [1, 0, 500])),
            // Another one's window is its own, and begins when it comes.
            (600, OTHER, SHORT, Pass(PACKETS, OTHER, [2, 0, 1_000])),
            (700, ONE, SHORT, Pass(PACKETS, ONE, [0, 300, 300])),
            // What is refused does not make it longer.
            (800, ONE, SHORT, Drop(PACKETS, ONE, [0, 200, 200])),
            (999, ONE, SHORT, Drop(PACKETS, ONE, [0, 1, 1])),
            // Its end is not in it.
            (1_000, ONE, SHORT, Pass(PACKETS, ONE, [2, 0, 1_000])),
            (1_600, OTHER, SHORT, Pass(PACKETS, OTHER, [2, 0, 1_000])),
            // The next one begins with a packet, not with the end of the one before.
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
            // There would be room for it, had nobody tried before.
            (100, ONE, SHORT, Drop(BYTES, ONE, [0, 400, 400])),
            (500, ONE, SHORT, Pass(BYTES, ONE, [1_958, 0, 500])),
            // So does what can never pass.
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
            // What is refused leaves no trace.
            (500, ONE, SHORT, Drop(PACKETS, ONE, [0, 500, 900])),
            (999, ONE, SHORT, Drop(PACKETS, ONE, [0, 1, 401])),
            // A packet counts for a period, the end of which is not in it.
            (1_000, ONE, SHORT, Pass(PACKETS, ONE, [0, 400, 1_000])),
            (1_399, ONE, SHORT, Drop(PACKETS, ONE, [0, 1, 601])),
            (1_400, ONE, SHORT, Pass(PACKETS, ONE, [0, 600, 1_000])),
            (2_399, ONE, SHORT, Pass(PACKETS, ONE, [0, 1, 1_000])),
            (9_000, ONE, SHORT, Pass(PACKETS, ONE, [1, 0, 1_000])),
        ],
    )
}

/// A log that is used for the second time.
#[test]
fn a_moving_window_goes_round() -> Result<()> {
    // 128 packets at once, a packet too many, and the same a second later; then one by one.
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
    let told = |at_ms, told| (at_ms, ONE, SHORT, told);
    let first = (1..=9).map(|n| told(0, Pass(PACKETS, ONE, [10 - n, 0, 2_000])));
    let rows = first.chain([
        // The next one passes when a tenth of the next bucket is over.
        told(0, Pass(PACKETS, ONE, [0, 1_100, 2_000])),
        told(999, Drop(PACKETS, ONE, [0, 101, 1_001])),
        // The start of the next bucket: all ten count.
        told(1_000, Drop(PACKETS, ONE, [0, 100, 1_000])),
        told(1_099, Drop(PACKETS, ONE, [0, 1, 901])),
        // Nine of them, and this one.
        told(1_100, Pass(PACKETS, ONE, [0, 100, 1_900])),
        // The middle: five of them.
        told(1_500, Pass(PACKETS, ONE, [3, 0, 1_500])),
        told(1_500, Pass(PACKETS, ONE, [2, 0, 1_500])),
        told(1_500, Pass(PACKETS, ONE, [1, 0, 1_500])),
        told(1_500, Pass(PACKETS, ONE, [0, 100, 1_500])),
        // Refused, and not counted.
        told(1_500, Drop(PACKETS, ONE, [0, 100, 1_500])),
        told(1_599, Drop(PACKETS, ONE, [0, 1, 1_401])),
        // The end: of ten a thousandth, and that is some of a packet.
        told(1_999, Pass(PACKETS, ONE, [3, 0, 1_001])),
        // The start of the third: the six of the second.
        told(2_000, Pass(PACKETS, ONE, [3, 0, 2_000])),
        // A whole bucket without a packet: it begins anew.
        told(4_000, Pass(PACKETS, ONE, [9, 0, 2_000])),
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
            // All of it at once; as many again only when the next bucket is over, too.
            (0, ONE, 2_000, Pass(BYTES, ONE, [0, 1_000, 1_000])),
            (750, ONE, 1_004, Drop(BYTES, ONE, [1_000, 1, 250])),
            (750, ONE, 1_000, Pass(BYTES, ONE, [0, 250, 750])),
            (999, ONE, 2_001, Never(BYTES, ONE, [996, 501])),
        ],
    )
}

/// What one rate denies is charged to none, but to a fixed window that denies it itself.
#[test]
fn several_rates_are_judged_together() -> Result<()> {
    const SECOND: &str = PACKETS;
    const MINUTE: &str = "PacketsPerIPAddress#2";
    let config = |strategy| {
        format!(
            "limits: {{PacketsPerIPAddress: {{strategy: {strategy}, rate: 2/second; 5/minute}}}}\n"
        )
    };
    let both = |at_ms, told| (at_ms, ONE, SHORT, told);
    check(
        &config("moving-window"),
        &[
            both(0, Pass(SECOND, ONE, [1, 0, 1_000])),
            both(0, Pass(SECOND, ONE, [0, 1_000, 1_000])),
            // Five packets within a second, of which the minute counts none.
            both(500, Drop(SECOND, ONE, [0, 500, 500])),
            both(500, Drop(SECOND, ONE, [0, 500, 500])),
            both(999, Drop(SECOND, ONE, [0, 1, 1])),
            both(1_000, Pass(SECOND, ONE, [1, 0, 1_000])),
            both(1_000, Pass(SECOND, ONE, [0, 1_000, 1_000])),
            both(2_000, Pass(MINUTE, ONE, [0, 58_000, 60_000])),
            both(59_999, Drop(MINUTE, ONE, [0, 1, 2_001])),
            // The second has counted none of those that the minute denied.
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
