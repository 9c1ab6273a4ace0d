//! Configuration files: what is accepted, and every error with its place and its words.

use std::{fs, path::Path, process::Command, sync::LazyLock};

use limiter_common::limit::{Cost, IdFormat, LimitId};
use limiter_userspace::{
    config::{self, AttachMode, Buckets, Config, Diagnostics, Metrics},
    policy::{Limit, Override, Rate},
};
use proptest::prelude::*;

/// A limit to go with what is tested elsewhere in a file.
const LIMIT: &str = "limits: {PacketsPerIPAddress: {burst: 5, count: 5, period: 1s}}\n";

/// Loads the first of `files`, which stand in a directory of their own. Errors come without
/// the directory's name.
#[expect(clippy::unwrap_used, reason = "a test's own files can be written")]
fn load(files: &[(&str, &[u8])]) -> Result<Config, Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    let prefix = format!("{}/", directory.path().display());
    let lines = |error: Diagnostics| {
        let text = error.to_string().replace(&prefix, "");
        text.lines().map(ToOwned::to_owned).collect()
    };
    let path = directory.path().join(files[0].0);
    let loaded = config::load(&path);
    assert_told_by_the_command(&path, loaded.as_ref().err());
    loaded.map_err(lines)
}

/// `limiter check` says on stderr just what the library does, and exits accordingly.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "the binary was built for this test")]
fn assert_told_by_the_command(path: &Path, expected: Option<&Diagnostics>) {
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .arg(path)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let expected = expected.map_or_else(String::new, |errors| format!("{errors}\n"));
    assert_eq!(told, expected);
    let code = i32::from(!expected.is_empty());
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(
        output.stdout.is_empty(),
        code == 1,
        "nothing is shown of a bad file"
    );
}

/// Checks the errors of a configuration file: `line:column: message`, in order. None expected:
/// it must load.
#[track_caller]
fn check(yaml: &str, expected: &[&str]) {
    let found = load(&[("limiter.yaml", yaml.as_bytes())]).err();
    let expected: Vec<String> = expected
        .iter()
        .map(|line| format!("limiter.yaml:{line}"))
        .collect();
    assert_eq!(found.unwrap_or_default(), expected, "\n{yaml}");
}

/// Checks the errors of `rate`, a flow mapping's content, as the rate of the limit `name`;
/// columns count from the content's start.
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

/// Checks the errors of one override's id, as `ids` has it.
#[track_caller]
fn check_id(limit: &str, id: &str, expected: &[&str]) {
    let expected: Vec<String> = expected
        .iter()
        .map(|message| format!("7:11: {message}"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(
        &format!(
            "overrides:\n  - {limit}:\n      burst: 2000\n      count: 5\n      period: 1s\n      \
             ids:\n        - {id}\n"
        ),
        &expected,
    );
}

fn rate(burst: u64, count: u64, period_ns: u64) -> Rate {
    Rate {
        burst,
        count,
        period_ns,
    }
}

#[expect(clippy::unwrap_used, reason = "the tests' ids are right")]
fn overridden(id: &str, rate: Rate, comment: Option<&str>) -> Override {
    Override {
        id: id.parse().unwrap(),
        rate,
        comment: comment.map(ToOwned::to_owned),
    }
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn everything_in_one_file() {
    let yaml = "
interfaces: [eth0, eth1.100]
mode: native
buckets: {capacity: 65536}
metrics: {listen: '[::1]:9000'}
limits:
  PacketsPerIPv6Range: {burst: 400, count: 200, period: 1m}
  PacketsPerIPAddress: {burst: 20, count: 10, period: 1s}
overrides:
  - PacketsPerIPAddress:
      burst: 9
      count: 8
      period: 250ms
      ids:
        - 2001:0DB8:0:0::1
        - id: 10.0.0.2
          comment: a note
        - '10.0.0.1'
    BytesPerIPv4Range:
      burst: 3000
      count: 64000000000
      period: 1s
      ids: [192.0.2.0/24]
";
    let expected = Config {
        interfaces: vec!["eth0".to_owned(), "eth1.100".to_owned()],
        mode: AttachMode::Native,
        buckets: Buckets { capacity: 65_536 },
        metrics: Metrics {
            listen: Some("[::1]:9000".parse().unwrap()),
        },
        policy: limiter_userspace::policy::Policy {
            limits: vec![
                Limit {
                    name: "PacketsPerIPAddress".to_owned(),
                    id: LimitId(1),
                    id_format: IdFormat::IpAddress,
                    cost: Cost::Packets,
                    default: Some(rate(20, 10, SECOND)),
                    overrides: vec![
                        overridden("10.0.0.1/32", rate(9, 8, SECOND / 4), None),
                        overridden("10.0.0.2/32", rate(9, 8, SECOND / 4), Some("a note")),
                        overridden("2001:db8::1/128", rate(9, 8, SECOND / 4), None),
                    ],
                },
                Limit {
                    name: "PacketsPerIPv6Range".to_owned(),
                    id: LimitId(2),
                    id_format: IdFormat::Ipv6RangeCidr,
                    cost: Cost::Packets,
                    default: Some(rate(400, 200, 60 * SECOND)),
                    overrides: vec![],
                },
                Limit {
                    name: "BytesPerIPv4Range".to_owned(),
                    id: LimitId(8),
                    id_format: IdFormat::Ipv4RangeCidr,
                    cost: Cost::Bytes,
                    default: None,
                    overrides: vec![overridden(
                        "192.0.2.0/24",
                        rate(3000, 64_000_000_000, SECOND),
                        None,
                    )],
                },
            ],
        },
    };
    assert_eq!(load(&[("limiter.yaml", yaml.as_bytes())]), Ok(expected));
}

#[test]
fn what_is_left_out_has_defaults() {
    let config = load(&[("limiter.yaml", LIMIT.as_bytes())]).unwrap();
    assert_eq!(config.interfaces, Vec::<String>::new());
    assert_eq!(config.mode, AttachMode::Auto);
    assert_eq!(config.buckets.capacity, 1_048_576);
    assert_eq!(config.metrics.listen, "127.0.0.1:9470".parse().ok());
}

#[test]
fn both_forms_of_overrides_say_the_same() {
    let map = "overrides:
  PacketsPerIPAddress:10.0.0.1: {burst: 9, count: 8, period: 1s}
  PacketsPerIPv6Range:2001:db8:1::/48: {burst: 7, count: 6, period: 1s}
  PacketsPerIPAddress:2001:db8::: {burst: 9, count: 8, period: 1s}
";
    let list = "overrides:
  - PacketsPerIPAddress: {burst: 9, count: 8, period: 1s, ids: ['2001:db8::', 10.0.0.1]}
  - PacketsPerIPv6Range: {burst: 7, count: 6, period: 1s, ids: [{id: '2001:db8:1::/48'}]}
";
    let from_map = load(&[("limiter.yaml", map.as_bytes())]).unwrap();
    assert_eq!(from_map.policy.limits.len(), 2);
    assert_eq!(Ok(from_map), load(&[("limiter.yaml", list.as_bytes())]));
}

#[test]
fn anchors_aliases_and_merge_keys_work() {
    check(
        "limits:
  PacketsPerIPAddress: &rate {burst: 5, count: 5, period: 1s}
  NewConnectionsPerIPAddress: *rate
  BytesPerIPAddress:
    <<: *rate
    burst: 3000
",
        &[],
    );
    // An error stands where the alias stands.
    check(
        "limits:
  PacketsPerIPAddress: &rate {burst: 5, count: 5, period: 1s}
  BytesPerIPAddress: *rate
",
        &[
            "3:22: invalid burst '5', must be at least 1514 bytes: a larger Ethernet frame than the \
           burst could never pass",
        ],
    );
}

#[test]
fn a_file_that_is_no_configuration() {
    for (content, expected) in [
        (&b""[..], "is empty: limits or overrides are needed"),
        (b" \n\n", "is empty: limits or overrides are needed"),
        (b"# nothing\n", "is empty: limits or overrides are needed"),
        (b"---\n", "is empty: limits or overrides are needed"),
        (
            b"limits: \0",
            "is a binary file, not YAML: it has a NUL byte at offset 8",
        ),
        (b"mode: \xff", "is not UTF-8 text: invalid byte at offset 6"),
        (
            b"{}",
            "limits nothing: it needs a section 'limits', 'overrides', or both",
        ),
        (
            b"mode: auto",
            "limits nothing: it needs a section 'limits', 'overrides', or both",
        ),
    ] {
        assert_eq!(
            load(&[("limiter.yaml", content)]),
            Err(vec![format!("limiter.yaml: {expected}")]),
        );
    }
    check(
        "- a\n",
        &[
            "1:1: expected a map with the sections limits, overrides, interfaces, mode, \
                      buckets, metrics, found a list",
        ],
    );
    check(
        "limits",
        &[
            "1:1: expected a map with the sections limits, overrides, interfaces, mode, \
                       buckets, metrics, found the text 'limits'",
        ],
    );
}

#[test]
fn a_path_that_is_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let large = directory.path().join("large");
    fs::File::create(&large)
        .unwrap()
        .set_len(100 << 20)
        .unwrap();
    let fifo = directory.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    for (path, expected) in [
        (directory.path(), "is a directory, not a file"),
        (
            &directory.path().join("missing"),
            "cannot be read: No such file or directory (os error 2)",
        ),
        (
            large.as_path(),
            "is larger than 64 MiB, which is the most a configuration file may have",
        ),
        (fifo.as_path(), "is not a regular file"),
        (Path::new("/dev/zero"), "is not a regular file"),
    ] {
        let error = config::load(path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {expected}", path.display()));
    }
}

#[test]
fn syntax_errors_are_one_line() {
    check(
        "limits: [1\nmode: 2",
        &["2:5: invalid YAML: illegal placement of ':' indicator"],
    );
    check(
        "limits:\n\tx: 1",
        &["2:2: invalid YAML: tabs disallowed within this context (block indentation)"],
    );
    check("mode: \"auto", &["1:7: invalid YAML: unclosed quote"]);
    check(
        "limits: *x",
        &["1:9: invalid YAML: alias references unknown anchor"],
    );
    check(
        "limits: &x [*x]",
        &["1:13: invalid YAML: an alias may not stand inside the value it refers to"],
    );
    check(
        &format!("---\n{LIMIT}---\nmode: auto\n"),
        &["4:1: a second YAML document starts here, a file may have only one"],
    );
    check(
        &format!("limits: {}{}", "[".repeat(100), "]".repeat(100)),
        &["1:24: invalid YAML: nested more than 16 deep"],
    );
}

#[test]
fn aliases_do_not_unfold_without_end() {
    let level = |level: u32| {
        let uses = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{uses}]\n")
    };
    let bomb = "a: &a0 [x]\n".to_owned() + &(1..9).map(level).collect::<String>();
    let errors = load(&[("limiter.yaml", bomb.as_bytes())]).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(
        errors[0].ends_with("invalid YAML: too many aliases, or aliases that unfold to too much"),
        "{}",
        errors[0]
    );
}

#[test]
fn names() {
    check(
        "limit: 1\nmodes: auto\nxyz: 1\n5: 1\n~: 1\n[a]: 1\n",
        &[
            "1:1: unknown field 'limit', did you mean 'limits'?",
            "2:1: unknown field 'modes', did you mean 'mode'?",
            "3:1: unknown field 'xyz', must be one of limits, overrides, interfaces, mode, \
             buckets, metrics",
            "4:1: unknown field '5', must be one of limits, overrides, interfaces, mode, \
             buckets, metrics",
            "5:1: expected a name, found nothing",
            "6:1: expected a name, found a list",
        ],
    );
    check(
        "limits:
  PacketPerIPAdress: {burst: 1, count: 1, period: 1s}
  bytesperipv6range: {burst: 1, count: 1, period: 1s}
  NewOrdersPerAccount: {burst: 0, count: 1, period: 1s, x: 1}
",
        &[
            "2:3: unknown limit 'PacketPerIPAdress', did you mean 'PacketsPerIPAddress'?",
            "3:3: unknown limit 'bytesperipv6range', did you mean 'BytesPerIPv6Range'?",
            "4:3: unknown limit 'NewOrdersPerAccount', must be one of PacketsPerIPAddress, \
             PacketsPerIPv6Range, BytesPerIPAddress, BytesPerIPv6Range, \
             NewConnectionsPerIPAddress, NewConnectionsPerIPv6Range, PacketsPerIPv4Range, \
             BytesPerIPv4Range, NewConnectionsPerIPv4Range",
            "4:32: invalid burst '0', must be > 0",
            "4:57: unknown field 'x', must be one of burst, count, period",
        ],
    );
    check(
        &format!("{LIMIT}mode: auto\nmode: native\n{LIMIT}"),
        &[
            "3:1: duplicate 'mode', first at 2:1",
            "4:1: duplicate 'limits', first at 1:1",
        ],
    );
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
                (8, "invalid burst '0', must be > 0"),
                (18, "invalid count '-1', must be > 0"),
                (30, "invalid period '0s', must be > 0"),
            ],
        ),
        (
            "burst: 1.5, count: 1e3, period: -1s",
            &[
                (8, "invalid burst '1.5', must be a whole number, in digits"),
                (20, "invalid count '1e3', must be a whole number, in digits"),
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
                    "invalid period '5', its unit is missing: ns, us, ms, s, m or h, such as '5s'",
                ),
            ],
        ),
        (
            "burst: 9223372036854775808, count: 99999999999999999999, period: 1d",
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
                    "invalid period '1d', unknown unit 'd', must be one of ns, us, ms, s, m, h",
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
                (8, "expected a whole number, found the text 'many'"),
                (21, "expected a whole number, found a list"),
                (
                    33,
                    "expected a duration, such as '1s' or '1h30m', found an empty mapping",
                ),
            ][..],
        ),
        (
            "burst: yes, count: ~, period: off",
            &[
                (8, "expected a whole number, found the boolean 'yes'"),
                (20, "expected a whole number, found nothing"),
                (
                    31,
                    "expected a duration, such as '1s' or '1h30m', found the boolean 'off'",
                ),
            ],
        ),
        (
            "burst: .inf, count: 1, period: soon",
            &[
                (8, "expected a whole number, found the text '.inf'"),
                (
                    32,
                    "invalid period 'soon', a duration such as '1s', '1h30m' or '250ms' is needed",
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
                "invalid period '2000000h', must be at most 1281023h: that is 146 years",
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
  PacketsPerIPv6Range: {}
  BytesPerIPAddress:
  BytesPerIPv6Range: 5
",
        &[
            "2:3: missing field 'period'",
            "3:3: missing fields 'burst', 'count', 'period'",
            "4:20: expected burst, count and period, found nothing",
            "5:22: expected burst, count and period, found the number '5'",
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
                "invalid count '1000000001', must be at most 1000000000 for this period: 1 a \
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
                "invalid burst '1513', must be at least 1514 bytes: a larger Ethernet frame than \
                 the burst could never pass",
            ),
            (
                21,
                "invalid count '64001', must be at most 64000 for this period: 64 a nanosecond",
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
            "invalid burst '1281024', must be at most 1281023 for this count and period: a \
             larger bucket would take over a century to refill",
        )],
    );
}

#[test]
fn empty_sections() {
    check("limits: {}", &["1:9: no limits: name at least one"]);
    check(
        "limits:\n",
        &["1:7: expected a map of limit names to burst, count and period, found nothing"],
    );
    check(
        "limits: []\n",
        &["1:9: expected a map of limit names to burst, count and period, found a list"],
    );
    for overrides in ["{}", "[]"] {
        check(
            &format!("{LIMIT}overrides: {overrides}"),
            &["2:12: no overrides: name at least one, or leave the section out"],
        );
    }
    check(
        &format!("{LIMIT}overrides: 5"),
        &[
            "2:12: expected a map of 'Name:id' to burst, count and period, or a list of overrides \
           with 'ids', found the number '5'",
        ],
    );
}

#[test]
fn overrides_as_a_map() {
    check(
        "overrides:
  PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}
  PacketsPerIPAdress:10.0.0.1: {burst: 1, count: 1, period: 1s}
  'PacketsPerIPAddress:': {burst: 1, count: 1, period: 1s}
  PacketsPerIPAddress:10.0.0.1: {burst: 0, count: 1, period: 1s}
  PacketsPerIPAddress:2001:db8::1: {burst: 1, count: 1, period: 1s}
  PacketsPerIPAddress:2001:DB8:0::1: {burst: 1, count: 1, period: 1s}
  PacketsPerIPAddress:10.0.0.1: {burst: 1, count: 1, period: 1s}
  PacketsPerIPv6Range:2001:db8:1::5/48: {count: 1, period: 1s}
  PacketsPerIPAddress:10.0.0.9: {burst: 1, count: 1, period: 1s, ids: []}
",
        &[
            "2:3: missing id, expected 'PacketsPerIPAddress:' and an IPv4 or IPv6 address, such \
             as '192.0.2.1' or '2001:db8::1'",
            "3:3: unknown limit 'PacketsPerIPAdress', did you mean 'PacketsPerIPAddress'?",
            "4:3: invalid id '', expected an IPv4 or IPv6 address, such as '192.0.2.1' or \
             '2001:db8::1'",
            "5:41: invalid burst '0', must be > 0",
            "7:3: duplicate id '2001:DB8:0::1' of PacketsPerIPAddress, first at 6:3",
            "8:3: duplicate 'PacketsPerIPAddress:10.0.0.1', first at 5:3",
            "9:3: missing field 'burst'",
            "9:3: invalid id '2001:db8:1::5/48', must have no host bits set, did you mean \
             '2001:db8:1::/48'?",
            "10:66: unknown field 'ids', must be one of burst, count, period",
        ],
    );
}

#[test]
fn overrides_as_a_list() {
    check(
        "overrides:
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, ids: []}
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, ids: 10.0.0.1}
  - PacketsPerIPAddress:10.0.0.1: {burst: 1, count: 1, period: 1s, ids: [10.0.0.1]}
  - {}
  - 10.0.0.1
  - PacketsPerIPAddress:
  - PacketsPerIPAddress: {burst: 1, count: 1, period: 1s, id: [10.0.0.1]}
",
        &[
            "2:5: missing field 'ids'",
            "3:64: no ids: name at least one",
            "4:64: expected a list of ids, found the text '10.0.0.1'",
            "5:5: unknown limit 'PacketsPerIPAddress:10.0.0.1', did you mean \
             'PacketsPerIPAddress' with 'ids: [10.0.0.1]'?",
            "6:5: expected a limit's name with burst, count, period and ids, found an empty \
             mapping",
            "7:5: expected a limit's name with burst, count, period and ids, found the text \
             '10.0.0.1'",
            "8:24: expected burst, count, period and ids, found nothing",
            "9:59: unknown field 'id', did you mean 'ids'?",
        ],
    );
}

#[test]
fn ids() {
    let address = "PacketsPerIPAddress";
    let wanted = "expected an IPv4 or IPv6 address, such as '192.0.2.1' or '2001:db8::1'";
    for id in [
        "10.0.0.1",
        "'10.0.0.1'",
        "::1",
        "{id: 10.0.0.1}",
        "255.255.255.255",
    ] {
        check_id(address, id, &[]);
    }
    check_id(
        address,
        "10.0.0",
        &[&format!("invalid id '10.0.0', {wanted}")],
    );
    check_id(address, "10", &[&format!("invalid id '10', {wanted}")]);
    check_id(
        address,
        "10.0.0.0/24",
        &[&format!("invalid id '10.0.0.0/24', {wanted}")],
    );
    check_id(address, "~", &["expected an id, found nothing"]);
    check_id(address, "[]", &["expected an id, found a list"]);
    check_id(address, "{comment: x}", &["missing field 'id'"]);
    check_id(
        address,
        "2001:db8::",
        &[
            "expected an id, found a mapping; with a colon at its end it must be in quotes: \
           '2001:db8::'",
        ],
    );
    check_id(
        address,
        "10.0.0.1/32",
        &["invalid id '10.0.0.1/32', must be an address without '/32', did you mean '10.0.0.1'?"],
    );
    check_id(
        address,
        "fe80::1%eth0",
        &[
            "invalid id 'fe80::1%eth0', must be without a zone ('%…'): an address is limited on \
           every interface",
        ],
    );
    check_id(
        "BytesPerIPv4Range",
        "192.0.2.0",
        &["invalid id '192.0.2.0', must be a range, did you mean '192.0.2.0/24'?"],
    );
    check_id(
        "BytesPerIPv6Range",
        "192.0.2.0/24",
        &["invalid id '192.0.2.0/24', expected an IPv6 /48 range, such as '2001:db8:1::/48'"],
    );
    check(
        "overrides:
  - PacketsPerIPAddress:
      burst: 1
      count: 1
      period: 1s
      ids:
        - id: 192.0.2.300
          comment: ~
        - {id: 10.0.0.1, comment: [x], coment: y}
        - 2001:db8::1
  - PacketsPerIPAddress:
      burst: 1
      count: 1
      period: 1s
      ids: [2001:0db8::1, 10.0.0.2, 10.0.0.1]
  - BytesPerIPAddress: {burst: 9999, count: 1, period: 1s, ids: [10.0.0.1]}
",
        &[
            &format!("7:15: invalid id '192.0.2.300', {wanted}"),
            "8:20: expected a comment, found nothing",
            "9:35: expected a comment, found a list",
            "9:40: unknown field 'coment', did you mean 'comment'?",
            "15:13: duplicate id '2001:0db8::1' of PacketsPerIPAddress, first at 10:11",
            "15:37: duplicate id '10.0.0.1' of PacketsPerIPAddress, first at 9:16",
        ],
    );
}

#[test]
fn settings() {
    let check =
        |settings: &str, expected: &[&str]| check(&format!("{settings}\n{LIMIT}"), expected);
    check("mode: generic", &[]);
    check(
        "mode: natve",
        &["1:7: unknown mode 'natve', did you mean 'native'?"],
    );
    check(
        "mode: skb",
        &["1:7: unknown mode 'skb', must be one of auto, native, generic"],
    );
    check(
        "mode:",
        &["1:5: expected auto, native or generic, found nothing"],
    );
    check(
        "mode: [auto]",
        &["1:7: expected auto, native or generic, found a list"],
    );
    check("buckets: {capacity: 1024}", &[]);
    check(
        "buckets: {capacity: 1023}",
        &["1:21: invalid capacity '1023', must be from 1024 to 67108864"],
    );
    check(
        "buckets: {capacity: 67108865}",
        &["1:21: invalid capacity '67108865', must be from 1024 to 67108864"],
    );
    check(
        "buckets: {capacity: 0, size: 1}",
        &[
            "1:21: invalid capacity '0', must be > 0",
            "1:24: unknown field 'size', must be one of capacity",
        ],
    );
    check(
        "buckets: 5",
        &["1:10: expected a map with 'capacity', found the number '5'"],
    );
    check("metrics: {listen: off}", &[]);
    check("metrics: {listen: 'off'}", &[]);
    check("metrics: {}", &[]);
    let wanted = "an address and port, such as '127.0.0.1:9470', or 'off'";
    check(
        "metrics: {listen: no}",
        &[&format!("1:19: expected {wanted}, found the boolean 'no'")],
    );
    check(
        "metrics: {listen: localhost:9470}",
        &[&format!(
            "1:19: invalid listen 'localhost:9470', expected {wanted}"
        )],
    );
    check(
        "metrics: {listen: 9470}",
        &["1:19: invalid listen '9470', did you mean '127.0.0.1:9470'?"],
    );
    check(
        "metrics: {listen: ':9470'}",
        &["1:19: invalid listen ':9470', did you mean '127.0.0.1:9470'?"],
    );
    check(
        "metrics: off",
        &["1:10: expected a map with 'listen', found the boolean 'off'"],
    );
    check(
        "interfaces: []",
        &["1:13: no interfaces: name at least one, or leave the section out"],
    );
    check(
        "interfaces: eth0",
        &["1:13: expected a list of interface names, found the text 'eth0'"],
    );
    check(
        "interfaces: [eth0, a/b, eth0, interface-too-long, '', {}]",
        &[
            "1:20: invalid interface 'a/b', expected 1 to 15 bytes without '/', ':' or white \
             space, such as 'eth0'",
            "1:25: duplicate interface 'eth0', first at 1:14",
            "1:31: invalid interface 'interface-too-long', expected 1 to 15 bytes without '/', \
             ':' or white space, such as 'eth0'",
            "1:51: invalid interface '', expected 1 to 15 bytes without '/', ':' or white space, \
             such as 'eth0'",
            "1:55: expected an interface's name, found an empty mapping",
        ],
    );
}

#[test]
fn metrics_can_be_turned_off() {
    let yaml = format!("metrics: {{listen: off}}\n{LIMIT}");
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    assert_eq!(config.metrics.listen, None);
}

#[test]
fn one_error_is_one_line_whatever_it_quotes() {
    check(
        "\"a\\nb\\e[31m\": 1\n",
        &[
            "1:1: unknown field 'a\\nb\\u{1b}[31m', must be one of limits, overrides, interfaces, \
           mode, buckets, metrics",
        ],
    );
}

#[test]
fn columns_count_characters() {
    check(
        "interfaces: [\"ü\", \"日本\", a/b]\nlimits: {}",
        &[
            "1:25: invalid interface 'a/b', expected 1 to 15 bytes without '/', ':' or white \
             space, such as 'eth0'",
            "2:9: no limits: name at least one",
        ],
    );
}

#[test]
fn errors_of_named_files_carry_their_name() {
    let errors = load(&[
        (
            "limiter.yaml",
            b"overrides: overrides.yml\nlimits: limits.yml\nmode: x\n",
        ),
        (
            "limits.yml",
            b"PacketsPerIPAddress: {burst: 1, count: 1, period: 0s}\nX: {}\n",
        ),
        ("overrides.yml", b"- BytesPerIPAddress: {burst: 1}\n"),
    ])
    .unwrap_err();
    assert_eq!(
        errors[0],
        "limiter.yaml:3:7: unknown mode 'x', must be one of auto, native, generic"
    );
    assert_eq!(
        errors[1],
        "limits.yml:1:51: invalid period '0s', must be > 0"
    );
    assert!(errors[2].starts_with("limits.yml:2:1: unknown limit 'X', must be one of "));
    assert_eq!(
        errors[3],
        "limits.yml:2:1: missing fields 'burst', 'count', 'period'"
    );
    assert_eq!(
        errors[4],
        "overrides.yml:1:3: missing fields 'count', 'period'"
    );
    assert_eq!(errors[5], "overrides.yml:1:3: missing field 'ids'");
    assert!(errors[6].starts_with("overrides.yml:1:30: invalid burst '1', must be at least 1514"));
    assert_eq!(errors.len(), 7);
}

#[test]
fn named_files_that_cannot_be_read() {
    assert_eq!(
        load(&[
            (
                "limiter.yaml",
                b"limits: missing.yml\noverrides: empty.yml\n"
            ),
            ("empty.yml", b"# nothing\n"),
        ]),
        Err(vec![
            "limiter.yaml:1:9: the file 'missing.yml' cannot be read: No such file or directory \
             (os error 2)"
                .to_owned(),
            "limiter.yaml:2:12: the file 'empty.yml' is empty: limits or overrides are needed"
                .to_owned(),
        ]),
    );
    assert_eq!(
        load(&[
            ("limiter.yaml", b"limits: broken.yml\n"),
            ("broken.yml", b"a: [\n"),
        ]),
        Err(vec![
            "broken.yml:1:4: invalid YAML: unclosed bracket '['".to_owned()
        ]),
    );
}

#[test]
fn the_example_configurations_load() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let mut loaded = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // Files with another ending are those that a configuration names.
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let config = config::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
            assert!(!config.policy.limits.is_empty());
            loaded += 1;
        } else {
            assert!(
                NAMED.contains(&path.file_name().unwrap().to_str().unwrap()),
                "{path:?}"
            );
        }
    }
    assert_eq!(loaded, 4);
}

/// The files that configs/with-files.yaml names.
const NAMED: [&str; 2] = ["boulder-defaults.yml", "boulder-overrides.yml"];

#[test]
fn the_default_configuration_is_the_demonstration_s() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/limiter.yaml");
    let config = config::load(&path).unwrap();
    assert_eq!(config.interfaces, Vec::<String>::new());
    let limit = |id| {
        let mut limits = config.policy.limits.iter();
        limits.find(|limit| limit.id == LimitId(id)).unwrap()
    };
    assert_eq!(limit(1).default, Some(rate(200, 200, SECOND)));
    assert_eq!(limit(2).default, Some(rate(400, 400, SECOND)));
    assert_eq!(limit(5).default, Some(rate(50, 50, SECOND)));
    let [one] = limit(1).overrides.as_slice() else {
        panic!("{:?}", limit(1).overrides);
    };
    assert_eq!(
        (one.id, one.rate),
        ("10.77.0.4/32".parse().unwrap(), rate(1000, 1000, SECOND))
    );
    assert!(one.comment.is_some());
}

/// Pieces that configurations are made of, for making strange ones.
static PIECES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "limits overrides mode PacketsPerIPAddress BytesPerIPv6Range PacketsPerIPAddress:10.0.0.1 \
     burst count period ids id comment 10.0.0.1 2001:db8:: 1s 0 5 -1 1.5 ~ off &a *a << [ ] { } \
     : , - ' \" | > # ! % ? ---"
        .split_whitespace()
        .chain([
            "\n", "\n  ", "\n    ", " ", ": ", "- ", "\u{feff}", "\r\n", "\t",
        ])
        .collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics_and_no_error_is_without_words(
        pieces in prop::collection::vec(prop::sample::select(PIECES.clone()), 0..40),
    ) {
        let text = pieces.concat();
        if let Err(errors) = load(&[("limiter.yaml", text.as_bytes())]) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert!(error.starts_with("limiter.yaml:"), "{}", error);
            }
        }
    }
}
