//! `count: auto`: rates that the daemon finds.

use limiter_policy::policy::Limit;

use super::harness::{self, SECOND, check, rate};

fn total(more: &str) -> String {
    format!("limits:\n  All: {{id: total, cost: packets, {more}}}\n")
}

#[track_caller]
fn read(more: &str) -> Limit {
    harness::read(&total(more)).limits.remove(0)
}

#[test]
fn bounds_have_defaults() {
    let limit = read("count: auto");
    assert_eq!(limit.default, Some(rate(1_000, 10_000, SECOND)));
    assert_eq!(limit.automatic(), Some((10_000, 1_000_000)));
    let limit = read("count: auto, floor: 100, ceiling: 10000000, reserve: {unknown: 50%}");
    assert_eq!(limit.default, Some(rate(10, 100, SECOND)));
    assert_eq!(limit.automatic(), Some((100, 10_000_000)));
    assert_eq!(
        read("count: auto, floor: 9000, ceiling: 9000").ceiling,
        Some(9_000)
    );
    assert_eq!(read("burst: 1, count: 1, period: 1s").automatic(), None);
}

#[test]
fn wrong_bounds() {
    let check = |more: &str, expected: &[&str]| check(&total(more), expected);
    let range = "must be from 100 to 10000000";
    check(
        "count: auto, floor: 99",
        &[&format!("2:55: invalid floor '99', {range}")],
    );
    check(
        "count: auto, ceiling: 10000001",
        &[&format!("2:57: invalid ceiling '10000001', {range}")],
    );
    check(
        "count: auto, floor: 2000, ceiling: 1999",
        &["2:48: the floor of 2000 is above the ceiling of 1999"],
    );
    check(
        "count: auto, ceiling: 9999",
        &["2:48: the floor of 10000 is above the ceiling of 9999"],
    );
    check(
        "burst: 1, count: 1, period: 1s, floor: 100, ceiling: 1000",
        &[
            "2:67: 'floor' is only for 'count: auto'",
            "2:79: 'ceiling' is only for 'count: auto'",
        ],
    );
    for meant in ["automatic", "AUTO"] {
        check(
            &format!("count: {meant}"),
            &[&format!(
                "2:42: unknown count '{meant}', did you mean 'auto'?"
            )],
        );
    }
}

#[test]
fn what_an_automatic_rate_cannot_have() {
    let check = |more: &str, expected: &[&str]| check(&total(more), expected);
    check(
        "count: auto, burst: 5, period: 1s",
        &[
            "2:48: 'burst' is not for 'count: auto': its bucket holds what comes back in a tenth of \
             a second; leave it out",
            "2:58: 'period' is not for 'count: auto': its bounds are rates in tokens a second; leave \
             it out",
        ],
    );
    check(
        "count: auto, rate: 5/s",
        &["2:48: 'rate' is not for 'count: auto': it finds the rate; leave it out"],
    );
    check(
        "count: auto, mode: observe",
        &[
            "2:35: 'count: auto' is not for mode observe: what the server bears is found by what the \
             limit drops",
        ],
    );
    check("count: auto, mode: 'off'", &[]);
    check(
        "count: auto, strategy: fixed-window",
        &[
            "2:35: 'count: auto' is not for strategy fixed-window, only for gcra: a window's count \
             cannot move",
        ],
    );
    check(
        "count: auto, reserve: {familiar: 10%, unknown: 250}",
        &[
            "2:48: 'reserve' beside 'count: auto' must be in percentages: how many tokens the bucket \
             holds changes with its rate",
        ],
    );
}

#[test]
fn only_all_sources_together_have_one() {
    check(
        "limits: {Each: {id: ipAddress, cost: packets, count: auto}}\n",
        &[
            "1:47: 'count: auto' is not for id ipAddress, only for id total: what a server bears, it \
             bears from all sources together",
        ],
    );
    check(
        "limits: {All: {id: total, cost: bytes, count: auto}}\n",
        &[
            "1:40: 'count: auto' is not for cost bytes: an overloaded host loses packets, whatever \
             their length",
        ],
    );
    check(
        "limits: {All: {id: total, cost: new-connections, count: auto}}\n",
        &[],
    );
}

#[test]
fn no_pressure_is_measured_by_a_rate_that_moves() {
    let why = "All has an automatic rate, and no rate that stays to measure pressure by: give it \
               burst, count and period, or give the sieve a 'pressure' of {packets-per-second: N}";
    let used = |sieve: &str| {
        format!(
            "limits: {{All: {{id: total, cost: packets, count: auto, ip-rep: busy}}}}\n\
             ip-rep: [{{name: busy{sieve}}}]\n"
        )
    };
    check(&used(""), &[&format!("1:63: {why}")]);
    let own = used(", pressure: {packets-per-second: 9}");
    check(&own, &[]);
    let of_another = used(", pressure: {limit: All}");
    check(&of_another, &[&format!("2:33: {why}")]);
}
