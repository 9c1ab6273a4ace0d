//! Burst, count and period.

use super::harness::check;

/// Checks the errors of `rate`, a flow mapping's content, as the rate of the limit `name`; columns
/// count from its start.
#[track_caller]
fn check_rate(name: &str, rate: &str, expected: &[(usize, &str)]) {
    let before = "  X: {".replace('X', name);
    let expected: Vec<String> = expected
        .iter()
        .map(|(column, message)| format!("2:{}: {message}", before.len() + column))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&format!("limits:\n{before}{rate}}}\n"), &expected);
}

#[test]
fn rates() {
    let name = "PacketsPerIPAddress";
    for (rate, expected) in [
        ("burst: 1, count: 1, period: 1s", &[][..]),
        ("burst: 1_000, count: 0x10, period: +1.5h", &[]),
        (
            "burst: 0, count: -1, period: 0s",
            &[
                (
                    8,
                    "invalid burst '0', must be > 0: to refuse everybody, use 'block'",
                ),
                (18, "invalid count '-1', must be > 0"),
                (30, "invalid period '0s', must be > 0"),
            ],
        ),
        (
            "burst: 1.5, count: 1e3, period: -1s",
            &[
                (
                    8,
                    "invalid burst '1.5', must be a whole number, such as 250 or 10k",
                ),
                (
                    20,
                    "invalid count '1e3', must be a whole number, such as 250 or 10k",
                ),
                (33, "invalid period '-1s', must be > 0"),
            ],
        ),
        (
            "burst: 010, count: '5', period: 5",
            &[
                (
                    8,
                    "invalid burst '010', must be written without leading zeros",
                ),
                (20, "invalid count '5', must be a number without quotes"),
                (
                    33,
                    "invalid period '5', its unit is missing: ns, us, ms, s, m, h, d or w, such as '5s'",
                ),
            ],
        ),
        (
            "burst: 9223372036854775808, count: 99999999999999999999, period: 1y",
            &[
                (
                    8,
                    "invalid burst '9223372036854775808', must be at most 9223372036854775807",
                ),
                (
                    36,
                    "invalid count '99999999999999999999', must be at most 9223372036854775807",
                ),
                (
                    66,
                    "invalid period '1y', unknown unit 'y', must be one of ns, us, ms, s, m, h, d, \
                     w",
                ),
            ],
        ),
    ] {
        check_rate(name, rate, expected);
    }
}

#[test]
fn rates_of_the_wrong_type() {
    let name = "PacketsPerIPAddress";
    for (rate, expected) in [
        (
            "burst: many, count: [], period: {}",
            &[
                (
                    8,
                    "expected a whole number, such as 250 or 10k, found the text 'many'",
                ),
                (
                    21,
                    "expected a whole number, such as 250 or 10k, found a list",
                ),
                (
                    33,
                    "expected a duration, such as '1s' or '1h30m', found an empty mapping",
                ),
            ][..],
        ),
        (
            "burst: yes, count: ~, period: off",
            &[
                (
                    8,
                    "expected a whole number, such as 250 or 10k, found the boolean 'yes'",
                ),
                (
                    20,
                    "expected a whole number, such as 250 or 10k, found nothing",
                ),
                (
                    31,
                    "expected a duration, such as '1s' or '1h30m', found the boolean 'off'",
                ),
            ],
        ),
        (
            "burst: .inf, count: 1, period: soon",
            &[
                (
                    8,
                    "expected a whole number, such as 250 or 10k, found the text '.inf'",
                ),
                (
                    32,
                    "invalid period 'soon', expected a duration, such as '1s', '1h30m' or '250ms'",
                ),
            ],
        ),
        (
            "burst: 1, count: 1, period: 9999999h",
            &[(
                29,
                "invalid period '9999999h', must be at most 2562047h47m16.854775807s",
            )],
        ),
        (
            "burst: 1, count: 1, period: 2000000h",
            &[(
                29,
                "invalid period '2000000h', must be at most 1281023h (146 years)",
            )],
        ),
        (
            "burst: 1, count: 1, cuont: 1, period: 1s, burst: 2",
            &[
                (21, "unknown field 'cuont', did you mean 'count'?"),
                (43, "duplicate 'burst', first at 2:25"),
            ],
        ),
    ] {
        check_rate(name, rate, expected);
    }
}

#[test]
fn missing_parts_of_a_rate() {
    check(
        "limits:
  PacketsPerIPAddress: {burst: 1, count: 1}
  PacketsPerIPv6Range: {count: 1}
  BytesPerIPAddress:
  BytesPerIPv6Range: 5
",
        &[
            "2:3: missing field 'period'",
            "3:3: missing fields 'burst', 'period'",
            "4:20: expected burst, count and period, or rate, found nothing",
            "5:22: expected burst, count and period, or rate, found the number '5'",
        ],
    );
}

#[test]
fn rates_beyond_the_datapath() {
    for name in ["PacketsPerIPAddress", "NewConnectionsPerIPv6Range"] {
        check_rate(name, "burst: 1, count: 1000000000, period: 1s", &[]);
        check_rate(
            name,
            "burst: 1, count: 1000000001, period: 1s",
            &[(
                18,
                "invalid count '1000000001', must be at most 1000000000 for this period: 1 per \
                 nanosecond",
            )],
        );
    }
    let name = "BytesPerIPAddress";
    check_rate(name, "burst: 1514, count: 64000, period: 1us", &[]);
    check_rate(
        name,
        "burst: 1513, count: 64001, period: 1us",
        &[
            (
                8,
                "invalid burst '1513', must be at least 1514 bytes: an Ethernet frame larger than \
                 the burst could never pass",
            ),
            (
                21,
                "invalid count '64001', must be at most 64000 for this period: 64 per nanosecond",
            ),
        ],
    );
    check_rate(
        "PacketsPerIPAddress",
        "burst: 1281023, count: 1, period: 1h",
        &[],
    );
    check_rate(
        "PacketsPerIPAddress",
        "burst: 1281024, count: 1, period: 1h",
        &[(
            8,
            "invalid burst '1281024', must be at most 1281023 for this count and period: a larger \
             bucket would take more than a century to refill",
        )],
    );
}
