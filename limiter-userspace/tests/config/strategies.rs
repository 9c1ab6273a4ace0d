//! Strategies of limits, and their parameters for a rate.

use limiter_common::strategy::Strategy;

use super::harness::{SECOND, check, load, rate};

/// Checks the errors of a custom limit; columns count from the content's start.
#[track_caller]
fn check_limit(content: &str, expected: &[(usize, &str)]) {
    let before = "  Own: {id: ipAddress, ";
    let expected: Vec<String> = expected
        .iter()
        .map(|(column, message)| format!("2:{}: {message}", before.len() + column))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&format!("limits:\n{before}{content}}}\n"), &expected);
}

#[test]
fn every_strategy_has_a_name() {
    for strategy in Strategy::ALL {
        let name = strategy.name();
        let burst = if strategy == Strategy::Gcra {
            ", burst: 5"
        } else {
            ""
        };
        let yaml = format!(
            "limits: {{PacketsPerIPAddress: {{strategy: {name}, count: 5, period: 1s{burst}}}}}\n\
             overrides: {{PacketsPerIPAddress:10.0.0.1: {{count: 7, period: 1s{burst}}}}}\n"
        );
        let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
        let limit = &config.policy.limits[0];
        assert_eq!(limit.strategy, strategy);
        assert_eq!(limit.default, Some(rate(5, 5, SECOND)));
        // A strategy without a burst takes the count in its place.
        let burst = if strategy == Strategy::Gcra { 5 } else { 7 };
        assert_eq!(limit.overrides[0].rate, rate(burst, 7, SECOND));
    }
    let config = load(&[("limiter.yaml", super::harness::LIMIT.as_bytes())]).unwrap();
    assert_eq!(config.policy.limits[0].strategy, Strategy::Gcra);
}

#[test]
fn unknown_names() {
    for (name, near) in [
        ("fixedwindow", "fixed-window"),
        ("Fixed-Window", "fixed-window"),
        ("FixedWindowRateLimiter", "fixed-window"),
        ("moving_window", "moving-window"),
        ("MovingWindowRateLimiter", "moving-window"),
        ("sliding window counter", "sliding-window-counter"),
        ("sliding-window-conter", "sliding-window-counter"),
        ("sliding-window", "sliding-window-counter"),
        ("moving", "moving-window"),
        ("GCRA", "gcra"),
    ] {
        check_limit(
            &format!("cost: packets, strategy: {name}, count: 5, period: 1s"),
            &[(
                26,
                &format!("unknown strategy '{name}', did you mean '{near}'?"),
            )],
        );
    }
    check_limit(
        "cost: packets, strategy: leaky-bucket, rate: 5/second",
        &[(
            26,
            "unknown strategy 'leaky-bucket', must be one of gcra, fixed-window, moving-window, \
             sliding-window-counter",
        )],
    );
    check_limit(
        "cost: packets, strategy: [], rate: 5/second",
        &[(
            26,
            "expected gcra, fixed-window, moving-window or sliding-window-counter, found a list",
        )],
    );
}

#[test]
fn strategies_that_lock_out_persistent_sources() {
    for name in [
        "fixed-window-elastic-expiry",
        "fixed_window_elastic_expiry",
        "FixedWindowElasticExpiryRateLimiter",
        "fixed-window-elastic",
    ] {
        check_limit(
            &format!("cost: packets, strategy: {name}, rate: 5/second"),
            &[(
                26,
                &format!(
                    "'{name}' is not supported: denied packets extend its window too, so a source \
                     that keeps trying is locked out for ever, and anyone who forges its address \
                     can lock it out (deprecated in the Python library since 4.1): use \
                     fixed-window or gcra with a 'ban'"
                ),
            )],
        );
    }
}

#[test]
fn windows_have_no_burst() {
    for name in ["fixed-window", "moving-window", "sliding-window-counter"] {
        let why = format!(
            "'burst' is not for strategy {name}, whose window admits no more than 'count': leave \
             it out, or use strategy gcra"
        );
        let before = format!("cost: packets, strategy: {name}, ");
        for numbers in ["burst: 5, count: 5, period: 1s", "burst: 5, rate: 5/second"] {
            check_limit(&format!("{before}{numbers}"), &[(before.len() + 1, &why)]);
        }
        check(
            &format!(
                "limits: {{PacketsPerIPAddress: {{strategy: {name}}}}}\noverrides:\n  \
                 PacketsPerIPAddress:10.0.0.1: {{burst: 5, count: 5, period: 1s}}\n  \
                 PacketsPerIPAddress:10.0.0.2: {{burst: 5, rate: 5/second}}\n"
            ),
            &[&format!("3:34: {why}"), &format!("4:34: {why}")],
        );
        check(
            &format!("limits: {{PacketsPerIPAddress: {{strategy: {name}, period: 1s}}}}"),
            &["1:10: missing field 'count'"],
        );
    }
}

#[test]
fn what_windows_can_count() {
    let moving = "must be at most 128 for strategy moving-window, which keeps when each came: use \
                  sliding-window-counter or gcra";
    let window = "cost: packets, strategy: moving-window, ";
    check_limit(&format!("{window}count: 128, period: 10007h"), &[]);
    check_limit(
        &format!("{window}count: 129, period: 1s"),
        &[(48, &format!("invalid count '129', {moving}"))],
    );
    check_limit(
        &format!("{window}count: 1, period: 10008h"),
        &[(
            59,
            "invalid period '10008h', must be at most 10007h (416 days) for strategy moving-window",
        )],
    );
    check_limit(
        &format!("{window}rate: 5/second; 600/minute"),
        &[(
            57,
            &format!("invalid rate '600/minute', its count {moving}"),
        )],
    );
    check_limit(
        "cost: packets, strategy: sliding-window-counter, count: 1073741821, period: 1281023h",
        &[],
    );
    check_limit(
        "cost: packets, strategy: sliding-window-counter, count: 1073741822, period: 1281024h",
        &[
            (
                57,
                "invalid count '1073741822', must be at most 1073741821 for strategy \
                 sliding-window-counter: use fixed-window or gcra",
            ),
            (
                77,
                "invalid period '1281024h', must be at most 1281023h (146 years)",
            ),
        ],
    );
    check_limit(
        "cost: packets, strategy: fixed-window, count: 17592186044414, period: 1s",
        &[(
            47,
            "invalid count '17592186044414', must be at most 17592186044413 for strategy \
             fixed-window",
        )],
    );
    // The same bounds hold for overrides.
    check(
        "limits: {PacketsPerIPAddress: {strategy: moving-window}}\noverrides:\n  \
         PacketsPerIPAddress:10.0.0.1: {count: 129, period: 1s}\n  \
         PacketsPerIPAddress:10.0.0.2: {rate: 129/second}\n",
        &[
            &format!("3:41: invalid count '129', {moving}"),
            &format!("4:40: invalid rate '129/second', its count {moving}"),
        ],
    );
}

#[test]
fn windows_of_bytes() {
    check_limit(
        "cost: bytes, strategy: moving-window, count: 5000, period: 1s",
        &[(
            24,
            "'strategy: moving-window' is not for cost bytes: it keeps when each packet came, and \
             not how long it was; use sliding-window-counter or gcra",
        )],
    );
    for strategy in ["fixed-window", "sliding-window-counter"] {
        let before = format!("cost: bytes, strategy: {strategy}, ");
        check_limit(&format!("{before}count: 1514, period: 1s"), &[]);
        let why = "must be at least 1514 bytes: an Ethernet frame larger than the window admits \
                   could never pass";
        check_limit(
            &format!("{before}count: 1513, period: 1s"),
            &[(before.len() + 8, &format!("invalid count '1513', {why}"))],
        );
        check_limit(
            &format!("{before}rate: 1513/second"),
            &[(
                before.len() + 7,
                &format!("invalid rate '1513/second', its count {why}"),
            )],
        );
    }
}

#[test]
fn a_strategy_is_not_an_override_s() {
    let why = "'strategy' belongs to the limit: an override changes only its numbers";
    check(
        "overrides:
  PacketsPerIPAddress:10.0.0.1: {strategy: fixed-window, rate: 5/second}
",
        &[&format!("2:34: {why}")],
    );
    check(
        "overrides:
  - PacketsPerIPAddress: {strategy: gcra, rate: 5/second, ids: [10.0.0.1]}
",
        &[&format!("2:27: {why}")],
    );
}
