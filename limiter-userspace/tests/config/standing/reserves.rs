//! The field `reserve` of limits.

use limiter_policy::policy::{Reserve, ReserveSize};

use super::total;
use crate::harness::{LIMIT, check, read};

#[test]
fn reserves() {
    let read = |reserve: &str| {
        let policy = read(&total(&format!("reserve: {reserve}")));
        policy.limits[0].reserve.unwrap()
    };
    let share = |text: &str| ReserveSize::Fraction(text.parse().unwrap());
    let whole = "{familiar: 10%, fresh: 20%, retried: 30%, unknown: 50%}";
    let expected = Reserve {
        familiar: share("10%"),
        fresh: share("20%"),
        retried: share("30%"),
        unknown: share("50%"),
    };
    assert_eq!(read(whole), expected);
    assert_eq!(expected.to_string(), whole);
    // A missing key takes the value of the next higher standing.
    let expected = Reserve {
        familiar: ReserveSize::NOTHING,
        fresh: ReserveSize::Tokens(500),
        retried: ReserveSize::Tokens(500),
        unknown: share("99.9%"),
    };
    assert_eq!(read("{familiar: 0%, fresh: 500, unknown: 99.9%}"), expected);
    assert_eq!(read(&expected.to_string()), expected);
}

#[test]
fn wrong_reserves() {
    let check = |reserve: &str, expected: &[&str]| {
        check(&total(&format!("reserve: {reserve}")), expected);
    };
    let map = "expected a map, such as {familiar: 10%, unknown: 50%}";
    check("50%", &[&format!("3:14: {map}, found the text '50%'")]);
    for nothing in ["{}", "{unknown: 0}", "{familiar: 0%, unknown: 0}"] {
        check(
            nothing,
            &[&format!("3:5: 'reserve' reserves nothing: {map}")],
        );
    }
    check(
        "{unknwon: 50%}",
        &["3:15: unknown field 'unknwon', did you mean 'unknown'?"],
    );
    check(
        "{proven: 10%, unknown: 50%}",
        &["3:15: 'proven' cannot be held back: proven sources may use all of a bucket"],
    );
    let expected = "expected a percentage of the burst, such as '10%', or tokens, such as 500";
    let percentage = "expected a percentage from '0%' to '100%', with at most four decimals, such as \
                      '0.5%'";
    let never = "must be below the burst of 2000: no packet of unknown sources could ever pass";
    for (unknown, why) in [
        ("half", expected),
        ("'500'", expected),
        ("101%", percentage),
        ("-1%", percentage),
        ("0.00001%", percentage),
        ("-1", expected),
        ("0.5", expected),
        ("100%", never),
        // Rounded up, this reserves the whole burst.
        ("99.99%", never),
        ("2000", never),
        ("2001", never),
    ] {
        let written = unknown.trim_matches('\'');
        check(
            &format!("{{unknown: {unknown}}}"),
            &[&format!("3:24: invalid unknown '{written}', {why}")],
        );
    }
    check(
        "{unknown: [1]}",
        &[&format!("3:24: {expected}, found a list")],
    );
    check("{unknown: 1999}", &[]);
    check(
        "{fresh: 20%, retried: 10%, unknown: 399}",
        &[
            "3:36: invalid retried '10%', must be at least that of fresh, 20%: a lower standing \
             leaves at least as much",
        ],
    );
    check(
        "{familiar: 500, unknown: 499}",
        &[
            "3:39: invalid unknown '499', must be at least that of retried, 500: a lower standing \
             leaves at least as much",
        ],
    );
    check("{familiar: 500, unknown: 25%}", &[]);
}

#[test]
fn reserves_of_other_limits() {
    let own = |fields: &str| format!("limits:\n  Own: {{id: ipAddress, {fields}}}\n");
    for (strategy, why) in [
        (
            "fixed-window",
            "its count comes back only when the window ends, and so would the reserve; use gcra",
        ),
        (
            "moving-window",
            "its tokens come back in the bursts in which they were taken; use gcra",
        ),
        (
            "sliding-window-counter",
            "how fast its tokens come back depends on the period before; use gcra",
        ),
    ] {
        let yaml = own(&format!(
            "reserve: {{unknown: 50%}}, cost: packets, rate: 100/second, strategy: {strategy}"
        ));
        check(
            &yaml,
            &[&format!(
                "2:24: 'reserve' is not for strategy {strategy}: {why}"
            )],
        );
    }
    let bytes = |unknown: u64| {
        own(&format!(
            "reserve: {{unknown: {unknown}}}, cost: bytes, burst: 20000, count: 1, period: 1s"
        ))
    };
    check(&bytes(18_486), &[]);
    check(
        &bytes(18_487),
        &[
            "2:43: invalid unknown '18487', must leave at least 1514 bytes of the burst of 20000: a \
             full Ethernet frame of unknown sources could never pass",
        ],
    );
    // Each rate of a limit has its own burst.
    check(
        &own("reserve: {unknown: 30}, cost: packets, rate: 100/second; 30/minute"),
        &[
            "2:43: invalid unknown '30', must be below the burst of 30: no packet of unknown sources \
             could ever pass",
        ],
    );
}

#[test]
fn overrides_fit_the_reserve() {
    let yaml = |reserve: &str, burst: u64| {
        format!(
            "limits:\n  PacketsPerIPAddress: {{burst: 2000, count: 50, period: 1s, reserve: {reserve}}}\n\
             overrides:\n  - PacketsPerIPAddress: {{burst: {burst}, count: 5, period: 1s, ids: [192.0.2.1]}}\n"
        )
    };
    check(&yaml("{unknown: 50%}", 10), &[]);
    check(&yaml("{unknown: 500}", 501), &[]);
    check(
        &yaml("{unknown: 500}", 500),
        &[
            "4:5: the 'reserve' of PacketsPerIPAddress does not fit: unknown '500' must be below the \
             burst of 500: no packet of unknown sources could ever pass",
        ],
    );
    check(
        &yaml("{familiar: 100, unknown: 50%}", 150),
        &[
            "4:5: the 'reserve' of PacketsPerIPAddress does not fit: unknown '50%' must be at least \
             that of retried, 100: a lower standing leaves at least as much",
        ],
    );
    check(
        &format!(
            "{LIMIT}overrides:\n  'PacketsPerIPAddress:192.0.2.1': {{burst: 9, count: 9, period: 1s, \
             reserve: {{unknown: 1}}}}\n"
        ),
        &[
            "3:69: 'reserve' belongs to the limit: there, a percentage is of each override's own \
             burst",
        ],
    );
}
