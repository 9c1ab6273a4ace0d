//! The field `ban` of a limit.

use limiter_policy::{
    config::Config,
    policy::{AutomaticBan, BanMode, Escalation},
};

use super::harness::{SECOND, check, load};

const HOUR: u64 = 3_600 * SECOND;

fn limited(ban: &str) -> String {
    format!("limits:\n  PacketsPerIPAddress: {{burst: 5, count: 5, period: 1s,\n    ban: {ban}}}\n")
}

fn own(id: &str, ban: &str) -> String {
    format!(
        "limits:\n  Own: {{id: {id}, cost: packets, burst: 5, count: 5, period: 1s,\n    ban: {ban}}}\n"
    )
}

#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' bans are right")]
fn read(ban: &str) -> AutomaticBan {
    let config: Config = load(&[("limiter.yaml", limited(ban).as_bytes())]).unwrap();
    config.policy.limits[0].ban.unwrap()
}

#[test]
fn what_is_left_out_has_defaults() {
    let ban = read("{after: 1000 drops, within: 10s, for: 10m}");
    let expected = AutomaticBan {
        after: 1_000,
        within_ns: 10 * SECOND,
        for_ns: 600 * SECOND,
        at_most_ns: 24 * HOUR,
        escalate: Escalation::NONE,
        range_after: Some(16),
        // Off by default: an attacker who forges 256 sources of a /48 would get the whole /48
        // banned.
        site_after: None,
        only: None,
        mode: BanMode::Enforce,
    };
    assert_eq!(ban, expected);
    // `for` may exceed the default of `at-most`, which then rises with it.
    let long = read("{after: 1000, within: 10s, for: 48h}");
    assert_eq!(long.at_most_ns, 48 * HOUR);
}

#[test]
fn every_field() {
    let ban = read(
        "{after: 1 drop, within: 1.5s, for: 1s, at-most: 8760h, escalate: 1.25, range-after: 2, \
         site-after: 3, mode: observe}",
    );
    let expected = AutomaticBan {
        after: 1,
        within_ns: SECOND * 3 / 2,
        for_ns: SECOND,
        at_most_ns: 8_760 * HOUR,
        escalate: Escalation::from_thousandths(1_250).unwrap(),
        range_after: Some(2),
        site_after: Some(3),
        only: None,
        mode: BanMode::Observe,
    };
    assert_eq!(ban, expected);
    assert_eq!(read(&ban.to_string()), ban);
    let off =
        read("{after: 1, within: 1s, for: 1s, range-after: off, site-after: off, escalate: 100.0}");
    assert_eq!((off.range_after, off.site_after), (None, None));
    assert_eq!(read(&off.to_string()), off);
}

#[test]
fn wrong_values() {
    let check = |ban: &str, expected: &[&str]| check(&limited(ban), expected);
    let map = "expected a map, such as {after: 1000 drops, within: 10s, for: 10m}";
    check("1000", &[&format!("3:10: {map}, found the number '1000'")]);
    check("off", &[&format!("3:10: {map}, found the boolean 'off'")]);
    check(
        "{}",
        &["3:5: missing fields 'after', 'within', 'for' of 'ban'"],
    );
    check(
        "{after: 9, within: 10s}",
        &["3:5: missing field 'for' of 'ban'"],
    );
    check(
        "{after: 9, within: 10s, fro: 10m}",
        &["3:34: unknown field 'fro', did you mean 'for'?"],
    );
    let rest = "within: 10s, for: 10m";
    let drops = "expected from 1 to 1000000000, such as '1000 drops'";
    for (after, why) in [
        ("0", "must be from 1 to 1000000000"),
        ("1000000001", "must be from 1 to 1000000000"),
        ("-1", "must be from 1 to 1000000000"),
        ("1.5", "must be a whole number, such as 250 or 10k"),
        ("1000 packets", drops),
        ("0 drops", drops),
        ("drops", drops),
        ("-5 drops", drops),
        ("1000000001 drops", drops),
        ("99999999999999999999 drops", drops),
    ] {
        check(
            &format!("{{after: {after}, {rest}}}"),
            &[&format!("3:18: invalid after '{after}', {why}")],
        );
    }
    for (escalate, why) in [
        ("0.5", "invalid escalate '0.5', expected"),
        ("0", "invalid escalate '0', expected"),
        ("-2", "invalid escalate '-2', expected"),
        ("100.001", "invalid escalate '100.001', expected"),
        ("1.0001", "invalid escalate '1.0001', expected"),
        ("1e1", "invalid escalate '1e1', expected"),
        (".5", "invalid escalate '.5', expected"),
        ("99999999999", "invalid escalate '99999999999', expected"),
    ] {
        check(
            &format!("{{escalate: {escalate}, after: 1, {rest}}}"),
            &[&format!(
                "3:21: {why} a number from 1 to 100 with up to three decimals, such as 2 or 1.5"
            )],
        );
    }
    check(
        &format!("{{escalate: twice, after: 1, {rest}}}"),
        &[
            "3:21: expected a number from 1 to 100 with up to three decimals, such as 2 or 1.5, \
           found the text 'twice'",
        ],
    );
    for (range_after, why) in [
        ("1", "invalid range-after '1', must be from 2 to 65536"),
        (
            "65537",
            "invalid range-after '65537', must be from 2 to 65536",
        ),
        (
            "never",
            "expected a whole number, such as 250 or 10k, found the text 'never'",
        ),
    ] {
        check(
            &format!("{{range-after: {range_after}, after: 1, {rest}}}"),
            &[&format!("3:24: {why}")],
        );
    }
    check(
        &format!("{{mode: off, after: 1, {rest}}}"),
        &["3:17: unknown mode 'off', must be one of enforce, observe"],
    );
}

#[test]
fn wrong_durations() {
    let check = |ban: &str, expected: &[&str]| check(&limited(ban), expected);
    check(
        "{within: 999ms, after: 1, for: 10m}",
        &["3:19: invalid within '999ms', must be from 1s to 24h"],
    );
    check(
        "{within: 24h1ns, after: 1, for: 10m}",
        &["3:19: invalid within '24h1ns', must be from 1s to 24h"],
    );
    check(
        "{within: 10, after: 1, for: 10m}",
        &[
            "3:19: invalid within '10', its unit is missing: ns, us, ms, s, m, h, d or w, such as '10s'",
        ],
    );
    check(
        "{within: [1s], after: 1, for: 10m}",
        &["3:19: expected a duration, such as '10s' or '1h30m', found a list"],
    );
    check(
        "{for: 0s, after: 1, within: 10s}",
        &["3:16: invalid for '0s', must be > 0"],
    );
    check(
        "{for: 8761h, after: 1, within: 10s}",
        &["3:16: invalid for '8761h', must be from 1s to 8760h"],
    );
    check(
        "{at-most: 5m, after: 1, within: 10s, for: 10m}",
        &["3:20: invalid at-most '5m', must be at least 'for': 10m"],
    );
    check("{at-most: 10m, after: 1, within: 10s, for: 10m}", &[]);
}

#[test]
fn whose_budget_it_is() {
    let ban = "{after: 9, within: 10s, for: 10m}";
    for id in ["ipAddress", "ipv4RangeCIDR", "ipv6RangeCIDR"] {
        check(&own(id, ban), &[]);
    }
    check(
        &own("total", ban),
        &[
            "3:5: 'ban' is not for id total: all sources share the budget, so the packets it drops \
             need not come from the source that used it up",
        ],
    );
    check(
        &own("destination", ban),
        &[
            "3:5: 'ban' is not for id destination: all sources share the budget, so the packets it \
             drops need not come from the source that used it up",
        ],
    );
    let subscribers = "subscribers: {1: [192.0.2.0/24]}\n";
    check(
        &format!("{}{subscribers}", own("regId", ban)),
        &[
            "3:5: 'ban' is not for id regId: a subscriber's sources share the budget, so the \
             packets it drops need not come from the source that used it up",
        ],
    );
    check(
        &own(
            "ipAddress",
            "{site-after: 4, range-after: off, after: 9, within: 10s, for: 10m}",
        ),
        &[
            "3:23: 'site-after' counts /64s that are banned as a whole, but 'range-after: off' \
             bans none",
        ],
    );
    let sites = "{site-after: 4, after: 9, within: 10s, for: 10m}";
    check(&own("ipv6RangeCIDR", sites), &[]);
    check(
        &own("ipv4RangeCIDR", sites),
        &["3:11: 'site-after' is for IPv6 ranges, but id ipv4RangeCIDR sees only IPv4"],
    );
    let ranges = "{range-after: 4, after: 9, within: 10s, for: 10m}";
    check(&own("ipv6RangeCIDR", ranges), &[]);
    check(
        &own("ipv4RangeCIDR", ranges),
        &["3:11: 'range-after' is for IPv6 ranges, but id ipv4RangeCIDR sees only IPv4"],
    );
}

#[test]
fn offenders_have_to_be_recorded() {
    let limits = limited("{after: 9, within: 10s, for: 10m}");
    check(&format!("{limits}offenders: {{capacity: 1024}}\n"), &[]);
    check(
        &format!("{limits}offenders: {{capacity: 0}}\n"),
        &[
            "3:5: 'ban' needs offenders, but `offenders: {capacity: 0}` records none: raise the \
             capacity, such as to 65536",
        ],
    );
}
