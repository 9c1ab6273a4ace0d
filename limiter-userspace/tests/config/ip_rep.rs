//! The section `ip-rep`, and the fields of limits that name sieves.

use limiter_common::limit::LimitId;
use limiter_policy::policy::{FlatMetrics, PermaBlock, PressureOf, Sieve, SieveUse};

use crate::harness::{LIMIT, SECOND, check, load};

/// A limit of all sources together.
const TOTAL: &str =
    "limits: {All: {id: total, cost: packets, burst: 9, count: 9, period: 1s, ip-rep: main}}\n";

/// Returns the sieve that a flow mapping describes, in a file with [`TOTAL`].
#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' files are right")]
fn sieve(fields: &str) -> Sieve {
    let yaml = format!("{TOTAL}ip-rep: [{{name: main, {fields}}}]\n");
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    config.policy.sieves.into_iter().next().unwrap()
}

#[expect(clippy::unwrap_used, reason = "90 is a percentage")]
fn main() -> Sieve {
    Sieve {
        name: "main".to_owned(),
        buckets: 10,
        size: 15,
        percentage: "90".parse().unwrap(),
        max_age_ns: 0,
        perma_block: PermaBlock::default(),
        ipv6_prefix: 128,
        pressure: None,
    }
}

#[test]
fn what_is_left_out_is_as_in_traffic_server() {
    assert_eq!(sieve("size: 15"), main());
    assert_eq!(sieve("buckets: 10"), Sieve { size: 0, ..main() });
}

#[test]
fn every_field_in_either_spelling() {
    let expected = Sieve {
        buckets: 3,
        size: 4,
        percentage: "87.5".parse().unwrap(),
        max_age_ns: 300 * SECOND,
        perma_block: PermaBlock {
            limit: 100,
            threshold: 1,
            max_age_ns: 1800 * SECOND,
        },
        ipv6_prefix: 64,
        pressure: Some(PressureOf::PacketsPerSecond(5000)),
        ..main()
    };
    assert_eq!(
        sieve(
            "buckets: 3, size: 4, percentage: 87.5, max-age: 300, perma-block: {limit: 100, \
             threshold: 1, max-age: 1800}, ipv6-prefix: 64, pressure: {packets-per-second: 5000}"
        ),
        expected
    );
    assert_eq!(
        sieve(
            "buckets: 3, size: 4, percentage: 0.875, max_age: 5m, perma_block: {limit: 100, \
             threshold: 1, max_age: 30m}, ipv6_prefix: 64, pressure: {packets_per_second: 5000}"
        ),
        expected
    );
    let limit = sieve("size: 15, pressure: {limit: All}");
    assert_eq!(limit.pressure, Some(PressureOf::Limit("All".to_owned())));
    for (written, hundredths) in [("90", 9000), ("0.9", 9000), ("0", 0), ("99.99", 9999)] {
        let read = sieve(&format!("size: 15, percentage: {written}"));
        assert_eq!(read.percentage.hundredths(), hundredths, "{written}");
    }
}

#[test]
fn what_a_sieve_must_be() {
    for (fields, error) in [
        (
            "size: 10",
            "2:29: invalid size '10', must be from 11 to 20, or 0 (off): above the 10 buckets, \
             since each holds half as many as the next",
        ),
        (
            "buckets: 30, size: 20",
            "2:42: invalid size '20', must be above the 30 buckets and at most 20: use at most 19 \
             buckets",
        ),
        ("size: 21", "2:29: invalid size '21', must be from 0 to 20"),
        (
            "buckets: 0",
            "2:32: invalid buckets '0', must be from 1 to 99",
        ),
        (
            "buckets: 100",
            "2:32: invalid buckets '100', must be from 1 to 99",
        ),
        (
            "percentage: 100",
            "2:35: invalid percentage '100', must be at least 0 and below 100, or below 1 as a \
             fraction",
        ),
        (
            "percentage: 1",
            "2:35: invalid percentage '1', must be at least 0 and below 100, or below 1 as a \
             fraction",
        ),
        (
            "percentage: 90%",
            "2:35: expected a number such as 90 or 0.9, found the text '90%'",
        ),
        (
            "percentage: 90.123",
            "2:35: invalid percentage '90.123', must have at most two decimals as a percentage, \
             four as a fraction",
        ),
        (
            "max-age: 5 minutes",
            "2:32: invalid max-age '5 minutes', unknown unit ' minutes', must be one of ns, us, \
             ms, s, m, h, d, w",
        ),
        (
            "max-age: -1s",
            "2:32: invalid max-age '-1s', must not be negative; 0 turns aging off",
        ),
        (
            "buckets: 4, perma-block: {threshold: 5}",
            "2:60: invalid threshold '5', must be from 0 to 4",
        ),
        (
            "ipv6-prefix: 0",
            "2:36: invalid ipv6-prefix '0', must be from 16 to 128",
        ),
        (
            "pressure: {}",
            "2:33: nothing to measure: expected {limit: NAME} or {packets-per-second: N}",
        ),
        (
            "pressure: {limit: All, packets-per-second: 5}",
            "2:33: only one of the two: expected {limit: NAME} or {packets-per-second: N}",
        ),
        (
            "pressure: {packets-per-second: 0}",
            "2:54: invalid packets-per-second '0', must be > 0",
        ),
        (
            "max-age: 1, max_age: 2",
            "2:35: duplicate 'max-age', first at 2:23",
        ),
        (
            "bucket: 4",
            "2:23: unknown field 'bucket', did you mean 'buckets'?",
        ),
        (
            "error: 429",
            "2:23: 'error' has no meaning here: it is an HTTP status, and packets get no answer",
        ),
    ] {
        check(
            &format!("{TOTAL}ip-rep: [{{name: main, {fields}}}]\n"),
            &[error],
        );
    }
}

#[test]
fn what_the_section_must_be() {
    check(
        &format!("{LIMIT}ip-rep: []\n"),
        &["2:9: no sieves: name at least one, or leave the section out"],
    );
    check(
        &format!("{LIMIT}ip-rep: {{name: x}}\n"),
        &["2:9: expected a list of sieves, each with a name, found a mapping"],
    );
    check(
        &format!("{LIMIT}ip-rep: [{{size: 11}}]\n"),
        &["2:10: missing field 'name'"],
    );
    check(
        &format!("{TOTAL}ip_rep:\n  - {{name: main}}\n  - {{name: main}}\n"),
        &["4:12: duplicate sieve 'main', first at 3:12"],
    );
    check(
        &format!("{TOTAL}ip-rep: [{{name: 'a b'}}, {{name: main}}]\n"),
        &[
            "2:17: invalid name 'a b', expected a letter followed by up to 63 letters, digits, \
             '-', '_' or '.'",
        ],
    );
    let many: Vec<_> = (0..5)
        .map(|number| format!("{{name: s{number}, size: 20, pressure: {{packets-per-second: 1}}}}"))
        .collect();
    check(
        &format!("{LIMIT}ip-rep: [{}]\n", many.join(", ")),
        &[
            "2:9: the entry lists of all sieves together hold 5242880 entries, the maximum is \
             4194304: use smaller sizes",
        ],
    );
}

#[test]
fn limits_that_use_a_sieve_fit_it() {
    let limits = "limits:
  PacketsPerIPAddress: {burst: 5, count: 5, period: 1s, ip-rep: main}
  All: {id: total, cost: bytes, burst: 9999, count: 9, period: 1s}
";
    check(
        &format!("{limits}ip-rep: [{{name: main}}]\n"),
        &[
            "2:65: PacketsPerIPAddress has one budget per ipAddress, so its total does not measure \
             pressure: give the sieve 'main' a 'pressure', {packets-per-second: N} or {limit: \
             NAME} with the name of a limit with id total",
        ],
    );
    check(
        limits,
        &["2:65: unknown sieve 'main': no section 'ip-rep' defines sieves"],
    );
    // A misspelt sieve is reported once: the sieve that was probably meant gets no second error.
    check(
        &format!("{limits}ip-rep: [{{name: mian, size: 11}}]\n"),
        &["2:65: unknown sieve 'main', did you mean 'mian'?"],
    );
    for (pressure, error) in [
        ("limit: Al", "4:43: unknown limit 'Al', did you mean 'All'?"),
        (
            "limit: PacketsPerIPAddress",
            "4:43: PacketsPerIPAddress has one budget per ipAddress, so it does not measure \
             pressure: name a limit with id total, or use {packets-per-second: N}",
        ),
        (
            "limit: BytesPerIPv6Range",
            "4:43: BytesPerIPv6Range has one budget per ipv6RangeCIDR, so it does not measure \
             pressure: name a limit with id total, or use {packets-per-second: N}",
        ),
    ] {
        check(
            &format!("{limits}ip-rep: [{{name: main, size: 11, pressure: {{{pressure}}}}}]\n"),
            &[error],
        );
    }
}

#[test]
fn pressure_needs_a_rate() {
    let blocking = "lists: [{name: them, cidr: 192.0.2.0/24}]
limits: {All: {id: total, cost: packets, block: them";
    let error = "All has no rate to measure pressure by: give it burst, count and period, or give \
                 the sieve a 'pressure' of {packets-per-second: N}";
    check(
        &format!("{blocking}, ip-rep: main}}}}\nip-rep: [{{name: main, size: 11}}]\n"),
        &[&format!("2:63: {error}")],
    );
    check(
        &format!("{blocking}}}}}\nip-rep: [{{name: main, size: 11, pressure: {{limit: All}}}}]\n"),
        &[&format!("3:43: {error}")],
    );
    check(
        "ip-rep: [{name: main, size: 11, pressure: {limit: All}}]\n",
        &["1:43: unknown limit 'All': there are no limits"],
    );
}

#[test]
fn a_sieve_that_is_off_needs_no_use() {
    assert_eq!(uses(&format!("{LIMIT}ip-rep: [{{name: later}}]\n")), []);
    check(
        &format!("{LIMIT}ip-rep: [{{name: later, size: 11}}]\n"),
        &[
            "2:17: nothing uses the sieve 'later': name it as 'ip-rep' of a limit, or give it a \
             'pressure' to apply it to all packets",
        ],
    );
}

/// Returns each use of a file's sieves: the limit, and the sieve.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' files are right")]
fn uses(yaml: &str) -> Vec<(Option<u16>, Option<usize>)> {
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    let uses = config.policy.sieve_uses().into_iter();
    uses.map(|SieveUse { limit, sieve }| (limit.map(|LimitId(id)| id), sieve))
        .collect()
}

#[test]
fn uses_are_those_of_limits_and_of_the_whole_interface() {
    let limits = "limits:
  All: {id: total, cost: packets, burst: 9, count: 9, period: 1s, ip-rep: main}
  Dns: {id: total, cost: packets, burst: 9, count: 9, period: 1s, match: {destination-port: 53}}
  Off: {id: total, cost: packets, burst: 9, count: 9, period: 1s, mode: off, ip-rep: main}
  PacketsPerIPAddress: {burst: 5, count: 5, period: 1s, ip-rep: dns}
";
    assert_eq!(
        uses(&format!(
            "{limits}ip-rep:
- {{name: main, size: 15}}
- {{name: dns, size: 15, pressure: {{limit: Dns}}}}
- {{name: everything, size: 15, pressure: {{packets-per-second: 100}}}}
"
        )),
        [
            (Some(1), Some(1)),
            (Some(32), Some(0)),
            (Some(33), None),
            (None, Some(2)),
        ]
    );
    // Sieves that are off have no uses.
    assert_eq!(
        uses(&format!(
            "{limits}ip-rep:
- {{name: main}}
- {{name: dns, pressure: {{limit: Dns}}}}
- {{name: everything, pressure: {{packets-per-second: 100}}}}
"
        )),
        []
    );
}

#[test]
fn metrics_have_the_plugin_s_names() {
    let read = |metrics: &str| {
        let yaml = format!(
            "limits: {{All: {{id: total, cost: packets, burst: 9, count: 9, period: 1s, metrics: \
             {metrics}}}}}\n"
        );
        let config = load(&[("limiter.yaml", yaml.as_bytes())]);
        config.map(|config| config.policy.limits[0].metrics.clone())
    };
    let names = |prefix: &str, tag: &str| {
        Ok(Some(FlatMetrics {
            prefix: prefix.to_owned(),
            tag: tag.to_owned(),
        }))
    };
    assert_eq!(read("{}"), names("plugin.rate_limiter", "All"));
    assert_eq!(
        read("{prefix: ddos, tag: example.com:8443}"),
        names("ddos", "example.com:8443")
    );
    for (metrics, wrong) in [
        ("{tag: 'a b'}", "invalid tag 'a b'"),
        ("{prefix: ''}", "invalid prefix ''"),
        ("{prefix: 'a\"'}", "invalid prefix 'a\"'"),
    ] {
        let errors = read(metrics).unwrap_err();
        assert!(errors[0].contains(wrong), "{errors:?}");
    }
    let total = "id: total, cost: packets, burst: 9, count: 9, period: 1s";
    check(
        &format!(
            "limits:\n  A: {{metrics: {{tag: x}}, {total}}}\n  B: {{metrics: {{tag: x}}, {total}}}\n"
        ),
        &[
            "3:16: duplicate metrics 'plugin.rate_limiter.sni.x', already those of A: choose \
             another 'tag' or 'prefix'",
        ],
    );
}

#[test]
fn a_size_is_told_by_its_lists() {
    let sieve = main();
    assert_eq!(sieve.capacity(10), 32_768);
    assert_eq!(sieve.capacity(9), 16_384);
    assert_eq!(sieve.capacity(1), 64);
    assert_eq!(sieve.capacity(0), 32_768);
}
