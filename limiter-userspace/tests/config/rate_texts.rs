//! Rates written as text, and limits of several rates.

use limiter_common::limit::LimitId;
use limiter_policy::{
    config,
    policy::{Limit, Names},
};

use super::harness::{SECOND, check, load, overridden, rate};

const MINUTE: u64 = 60 * SECOND;

/// Checks the errors of `content` as a limit's content; columns count from its start.
#[track_caller]
fn check_rate(content: &str, expected: &[(usize, &str)]) {
    let before = "  PacketsPerIPAddress: {";
    let expected: Vec<String> = expected
        .iter()
        .map(|(column, message)| format!("2:{}: {message}", before.len() + column))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&format!("limits:\n{before}{content}}}\n"), &expected);
}

#[expect(clippy::unwrap_used, reason = "the tests' texts are right")]
fn limits(yaml: &str) -> Vec<Limit> {
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    config.policy.limits
}

#[test]
fn a_rate_in_one_text() {
    for (content, expected) in [
        ("rate: 10/minute", rate(10, 10, MINUTE)),
        ("rate: 100 per 2 hours", rate(100, 100, 120 * MINUTE)),
        ("rate: '10/Minutes'", rate(10, 10, MINUTE)),
        ("rate: 10/minute, burst: 3", rate(3, 10, MINUTE)),
    ] {
        let limits = limits(&format!("limits: {{PacketsPerIPAddress: {{{content}}}}}"));
        assert_eq!(limits.len(), 1);
        assert_eq!(limits[0].default, Some(expected), "{content}");
    }
}

/// A burst of some frames would leave TCP half of the rate.
#[test]
fn rates_in_bits() {
    let check = |content: &str, burst: u64, count: u64, period_ns: u64| {
        let limits = limits(&format!("limits: {{BytesPerIPAddress: {{{content}}}}}"));
        let found: Vec<_> = limits.iter().filter_map(|limit| limit.default).collect();
        assert_eq!(found, [rate(burst, count, period_ns)], "{content}");
    };
    check("rate: 100Mbit/s", 6_250_000, 12_500_000, SECOND);
    check("rate: 100 mbit per second", 6_250_000, 12_500_000, SECOND);
    check("rate: 10Mbit/s, burst: 16k", 16_000, 1_250_000, SECOND);
    check("rate: 6Gbit/minute", 6_250_000, 750_000_000, MINUTE);
    check("rate: 12345bit/s", 1_514, 1_543, SECOND);
    check(
        "rate: 1Mbit/s, strategy: fixed-window",
        125_000,
        125_000,
        SECOND,
    );
}

#[test]
fn texts_that_are_no_rates() {
    let expected = "expected a rate, such as '10/minute' or '100 per 2 hours'";
    for (content, column, message) in [
        (
            "rate: 1/seco",
            9,
            "invalid rate '1/seco', unknown unit 'seco', did you mean 'second'?",
        ),
        (
            "rate: 1/fortnight",
            9,
            "invalid rate '1/fortnight', unknown unit 'fortnight', must be one of second, minute, hour, day, \
             month, year",
        ),
        (
            "rate: 1.5/second",
            7,
            "invalid rate '1.5/second', must be a whole number, such as 250 or 10k",
        ),
        (
            "rate: -1/second",
            7,
            "invalid rate '-1/second', must be > 0",
        ),
        (
            "rate: 0/second",
            7,
            "invalid rate '0/second', must be > 0: to refuse everybody, use 'block'",
        ),
        (
            "rate: 100Mbit/s",
            7,
            "invalid rate '100Mbit/s', bits are for 'cost: bytes' alone",
        ),
        (
            "rate: 1/0 hours",
            9,
            "invalid rate '1/0 hours', the number of units '0' must be > 0",
        ),
        ("rate: ''", 7, &format!("invalid rate '', {expected}")),
        ("rate: many", 7, &format!("invalid rate 'many', {expected}")),
        (
            "rate: 10",
            7,
            "invalid rate '10', expected '/' or 'per' after the number, as in '10/minute'",
        ),
        (
            "rate: 2/second; 10/minute;",
            27,
            "invalid rate '', a rate is needed before and after each ',', ';' and '|'",
        ),
        (
            "rate: '2/second, 10/minuet'",
            21,
            "invalid rate '10/minuet', unknown unit 'minuet', did you mean 'minute'?",
        ),
        (
            "rate: 99999999999999999999/second",
            7,
            "invalid rate '99999999999999999999/second', must be at most 9223372036854775807",
        ),
        (
            "rate: 5/200 years",
            7,
            "invalid rate '5/200 years', its period must be at most 1281023h (146 years)",
        ),
        (
            "rate: 9000000000/second",
            7,
            "invalid rate '9000000000/second', its count must be at most 1000000000 for this \
             period: 1 per nanosecond",
        ),
        // In a text with escapes the error points to its start.
        (
            r#"rate: "1\u002fseco""#,
            7,
            "invalid rate '1/seco', unknown unit 'seco', did you mean 'second'?",
        ),
    ] {
        check_rate(content, &[(column, message)]);
    }
    for (value, found) in [
        ("[]", "a list"),
        ("{}", "an empty mapping"),
        ("~", "nothing"),
        ("yes", "the boolean 'yes'"),
    ] {
        check_rate(
            &format!("rate: {value}"),
            &[(
                7,
                &format!(
                    "expected a rate, such as '10/minute' or '100 per 2 hours', found {found}"
                ),
            )],
        );
    }
}

#[test]
fn errors_of_an_alias_are_where_it_stands() {
    check(
        "limits:
  PacketsPerIPAddress: {rate: &rate 1/seco}
  PacketsPerIPv4Range: {rate: *rate}
",
        &[
            "2:39: invalid rate '1/seco', unknown unit 'seco', did you mean 'second'?",
            "3:31: invalid rate '1/seco', unknown unit 'seco', did you mean 'second'?",
        ],
    );
}

#[test]
fn a_text_says_all_of_it() {
    let message =
        |fields| format!("'rate' already says what {fields} would: leave out one or the other");
    check_rate("rate: 1/second, count: 1", &[(1, &message("'count'"))]);
    check_rate(
        "burst: 1, count: 1, period: 1s, rate: 1/second",
        &[(33, &message("'count' and 'period'"))],
    );
    check_rate(
        "burst: 0, rate: 1/second",
        &[(
            8,
            "invalid burst '0', must be > 0: to refuse everybody, use 'block'",
        )],
    );
    check_rate(
        "burst: 9, rate: 1/second; 10/minute",
        &[(
            1,
            "'burst' is ambiguous beside 2 rates: leave it out, and each rate has its own",
        )],
    );
    check_rate(
        "rate: 2/second, 10/minute",
        &[(
            17,
            "'10/minute' comes after a ',' that ends the previous field: put the whole text of \
             'rate' in quotes",
        )],
    );
    check_rate(
        "rat: 1/second",
        &[(1, "unknown field 'rat', did you mean 'rate'?")],
    );
    check(
        "limits: {BytesPerIPAddress: {rate: 1513/second}}",
        &[
            "1:36: invalid rate '1513/second', its burst (its count) must be at least 1514 bytes: \
             an Ethernet frame larger than the burst could never pass",
        ],
    );
    check(
        "limits: {BytesPerIPAddress: {rate: 1513/second, burst: 1514}}",
        &[],
    );
}

#[test]
fn rates_that_are_the_same() {
    check_rate(
        "rate: 60/minute; 1/second | 60 per 60 seconds",
        &[(
            29,
            "duplicate rate '60 per 60 seconds', equal to '60/minute'",
        )],
    );
}

#[test]
fn several_rates_are_several_limits() {
    let limits = limits(
        "limits:
  Web:
    id: total
    cost: packets
    rate: 2/second; 10/minute | 100/hour
    mode: observe
    match: {protocol: udp}
    exclude: us
    block: us
    ip-rep: main
    metrics: {tag: web}
  PacketsPerIPAddress:
    rate: 3/second; 30/minute
    strategy: fixed-window
    ban: {after: 5, within: 10s, for: 10m}
overrides:
  - PacketsPerIPAddress: {rate: 4/second; 40/minute, ids: [{id: 10.0.0.1, comment: why}]}
  - PacketsPerIPAddress: {rate: 5/second; 5/second, ids: [10.0.0.0/24]}
lists: [{name: us, cidr: 192.0.2.1}]
ip-rep: [{name: main, size: 15}]
",
    );
    let named: Vec<_> = limits
        .iter()
        .map(|limit| (limit.name.as_str(), limit.id.0, limit.default.unwrap()))
        .collect();
    assert_eq!(
        named,
        [
            ("PacketsPerIPAddress", 1, rate(3, 3, SECOND)),
            ("PacketsPerIPAddress#2", 32, rate(30, 30, MINUTE)),
            ("Web", 33, rate(2, 2, SECOND)),
            ("Web#2", 34, rate(10, 10, MINUTE)),
            ("Web#3", 35, rate(100, 100, 60 * MINUTE)),
        ]
    );
    // Each part has its own rate's overrides; the rest is equal.
    let [first, second, web @ ..] = limits.as_slice() else {
        panic!("{limits:?}");
    };
    let overrides = |one, other| {
        vec![
            overridden("10.0.0.0/24", one, None),
            overridden("10.0.0.1/32", other, Some("why")),
        ]
    };
    assert_eq!(
        first.overrides,
        overrides(rate(5, 5, SECOND), rate(4, 4, SECOND))
    );
    assert_eq!(
        second.overrides,
        overrides(rate(5, 5, SECOND), rate(40, 40, MINUTE))
    );
    assert!(first.ban.is_some());
    assert_eq!(
        second,
        &Limit {
            name: second.name.clone(),
            id: second.id,
            default: second.default,
            overrides: second.overrides.clone(),
            ..first.clone()
        }
    );
    for (other, tag) in web[1..].iter().zip(["web-2", "web-3"]) {
        let mut metrics = web[0].metrics.clone().unwrap();
        metrics.tag = tag.to_owned();
        assert_eq!(
            other,
            &Limit {
                name: other.name.clone(),
                id: other.id,
                default: other.default,
                metrics: Some(metrics),
                // One part is enough to score a packet.
                ip_rep: None,
                ..web[0].clone()
            }
        );
    }
}

/// A limit that gets another rate keeps the buckets of its first ones.
#[test]
fn the_first_rate_has_the_limit_s_own_name() {
    let yaml = |rate| format!("limits: {{Web: {{id: total, cost: packets, rate: {rate}}}}}");
    let one = config::parse(&yaml("2/second"), "text").unwrap().policy;
    let (one, names) = one.with_names(&Names::default(), &[]).unwrap();
    let two = config::parse(&yaml("2/second; 10/minute"), "text").unwrap();
    let (two, _) = two.policy.with_names(&names, &[]).unwrap();
    assert_eq!(one.limits[0], two.limits[0]);
    assert_eq!(two.limits[1].id, LimitId(33));
}

#[test]
fn overrides_have_as_many_rates() {
    let own = "limits:
  PacketsPerIPAddress: {rate: 2/second; 100 per 2 hours}
  PacketsPerIPv4Range: {rate: 2/second}
overrides:
";
    let of = |override_: &str| {
        format!("{own}  {override_}\n  PacketsPerIPv6Range:2001:db8::/48: {{rate: 5/second}}\n")
    };
    check(
        &of("PacketsPerIPAddress:10.0.0.1: {burst: 5, count: 5, period: 1s}"),
        &[
            "5:3: PacketsPerIPAddress has 2 rates, so its overrides need as many: give 'rate', \
             such as '2/second; 100/2 hours'",
        ],
    );
    check(
        &of("PacketsPerIPAddress:10.0.0.1: {rate: 5/second}"),
        &[
            "5:40: 1 of 2 rates: PacketsPerIPAddress has '2/second; 100/2 hours', so its overrides \
             need 2",
        ],
    );
    check(
        &of("PacketsPerIPv4Range:10.0.0.0/24: {rate: 5/second; 9/hour}"),
        &["5:43: 2 rates, but PacketsPerIPv4Range has one, so its overrides must have one"],
    );
    check(
        &of("BytesPerIPAddress:10.0.0.1: {rate: 5000/second; 9000/hour}"),
        &[
            "5:38: 2 rates, but BytesPerIPAddress has none, so its overrides have one: give \
             BytesPerIPAddress 2 rates, too",
        ],
    );
    check(
        &of("PacketsPerIPAddress#2:10.0.0.1: {rate: 5/second}"),
        &[
            "5:3: 'PacketsPerIPAddress#2' is one of the rates of PacketsPerIPAddress: an override \
             of PacketsPerIPAddress needs a 'rate' for each of them",
        ],
    );
    // Errors in the limit's rates suppress the errors of its overrides.
    check(
        "limits: {PacketsPerIPAddress: {rate: 2/seco; 3/hour}}
overrides: {PacketsPerIPAddress:10.0.0.1: {rate: 5/second}}",
        &["1:40: invalid rate '2/seco', unknown unit 'seco', did you mean 'second'?"],
    );
}

#[test]
fn rates_count_as_limits() {
    let limits = |parts: usize| {
        let rates: Vec<_> = (1..=parts).map(|count| format!("{count}/second")).collect();
        let rates = rates.join("; ");
        format!(
            "limits:\n  A: {{id: total, cost: packets, rate: {rates}}}\n  B: {{id: total, cost: packets, rate: 1/second; 2/minute}}\n"
        )
    };
    check(&limits(62), &[]);
    check(
        &limits(63),
        &[
            "3:3: too many limits, the maximum is 64: each rate counts as one, and 2 limits have \
             65 rates",
        ],
    );
}

#[test]
fn more_rates_than_limits() {
    let rates: Vec<_> = (1..=65).map(|count| format!("{count}/second")).collect();
    check_rate(
        &format!("rate: {}", rates.join("|")),
        &[(
            7,
            "65 rates, but each counts as a limit, and the maximum is 64",
        )],
    );
}

#[test]
fn names_of_metrics_stay_unique() {
    check(
        "limits:
  A: {id: total, cost: packets, rate: 1/second; 2/minute, metrics: {tag: web}}
  B: {id: total, cost: packets, rate: 1/second, metrics: {tag: web-2}}
",
        &[
            "3:58: duplicate metrics 'plugin.rate_limiter.sni.web-2', already those of A#2: choose \
             another 'tag' or 'prefix'",
        ],
    );
}
