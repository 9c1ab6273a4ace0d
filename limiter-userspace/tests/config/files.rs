//! Configuration files, readable and unreadable.

use std::{fs, path::Path, process::Command};

use jiff::Timestamp;
use limiter_policy::config;
use rustix::time::{ClockId, clock_gettime};

use super::harness::{LIMIT, check, fields_of, load};

#[test]
fn a_file_that_is_no_configuration() {
    let sections = fields_of("## Sections");
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
            "limits nothing: it needs a section 'limits', 'overrides', 'block', 'ip-rep' or 'bans'",
        ),
        (
            b"mode: auto",
            "limits nothing: it needs a section 'limits', 'overrides', 'block', 'ip-rep' or 'bans'",
        ),
    ] {
        assert_eq!(
            load(&[("limiter.yaml", content)]),
            Err(vec![format!("limiter.yaml: {expected}")]),
        );
    }
    check(
        "- a\n",
        &[&format!(
            "1:1: expected a map with the sections {sections}, found a list"
        )],
    );
    check(
        "limits",
        &[&format!(
            "1:1: expected a map with the sections {sections}, found the text 'limits'"
        )],
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
            "is larger than 64 MiB, the maximum for such a file",
        ),
        (fifo.as_path(), "is not a regular file"),
        (Path::new("/dev/zero"), "is not a regular file"),
    ] {
        let error = config::load(path, Timestamp::UNIX_EPOCH)
            .unwrap_err()
            .to_string();
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
        &[
            "2:2: invalid YAML: line 2 is indented with a tab: use spaces, which count the same everywhere",
        ],
    );
    check("mode: \"auto", &["1:7: invalid YAML: unclosed quote"]);
    check(
        "limits: *x",
        &["1:9: invalid YAML: alias references unknown anchor"],
    );
    check(
        "limits: &x [*x]",
        &["1:13: invalid YAML: an alias may not be inside the value it refers to"],
    );
    check(
        &format!("---\n{LIMIT}---\nmode: auto\n"),
        &["4:1: a second YAML document starts here, but a file may have only one"],
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
    let [error] = &errors[..] else {
        panic!("{} errors", errors.len());
    };
    let expected = "invalid YAML: too many aliases, or aliases that expand to too much: write out what they \
                    stand for";
    assert!(error.ends_with(expected), "{error}");
}

/// One error costs little, and so does one aliased name, but a file may have millions.
#[test]
#[expect(clippy::disallowed_methods, reason = "it measures what it costs")]
fn many_errors_are_not_looked_for() {
    // An unknown field's error lists the valid fields and looks for the nearest name.
    let unknown = |number| format!("sectoin{number}: 1\n");
    let sections: String = (0..300_000).map(unknown).collect();
    let items = format!("block: [{}]\n", "no-list, ".repeat(300_000));
    let spent = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
    let begun = spent();
    for text in [sections, items] {
        let errors = load(&[("limiter.yaml", text.as_bytes())]).unwrap_err();
        assert_eq!(errors.len(), 101);
        let last = "limiter.yaml: more than 100 errors: correct these first";
        assert_eq!(errors[100], last);
    }
    // A debug build parses these six megabytes in some seconds. One error for each name took a minute.
    assert!(spent() - begun < 30);
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
    // The error points to the alias, not to the anchor.
    check(
        "limits:
  PacketsPerIPAddress: &rate {burst: 5, count: 5, period: 1s}
  BytesPerIPAddress: *rate
",
        &[
            "3:22: invalid burst '5', must be at least 1514 bytes: an Ethernet frame larger than \
             the burst could never pass",
        ],
    );
}

#[test]
fn one_error_is_one_line_whatever_it_quotes() {
    let sections = fields_of("## Sections");
    check(
        "\"a\\nb\\e[31m\": 1\n",
        &[&format!(
            "1:1: unknown field 'a\\nb\\u{{1b}}[31m', must be one of {sections}"
        )],
    );
}

#[test]
fn columns_count_characters() {
    check(
        "interfaces: [\"ü\", \"日本\", a/b]\nlimits: {}",
        &[
            "1:25: invalid interface 'a/b', expected 1 to 127 bytes without '/', ':' and white \
             space, such as 'eth0' or 'vnet*'",
            "2:9: no limits: name at least one, or leave the section out",
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
    assert!(errors[2].starts_with("limits.yml:2:1: unknown limit 'X': a limit of your own needs "));
    assert_eq!(
        errors[3],
        "overrides.yml:1:3: missing fields 'count', 'period'"
    );
    assert_eq!(errors[4], "overrides.yml:1:3: missing field 'ids'");
    assert!(errors[5].starts_with("overrides.yml:1:30: invalid burst '1', must be at least 1514"));
    assert_eq!(errors.len(), 6);
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
fn files_are_told_whether_or_not_they_are_right() {
    let config = load(&[
        (
            "limiter.yaml",
            b"limits: limits.yml\noverrides: overrides.yml\n",
        ),
        (
            "limits.yml",
            b"PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}\n",
        ),
        (
            "overrides.yml",
            b"- PacketsPerIPAddress: {burst: 2, count: 1, period: 1s, ids: [192.0.2.1]}\n",
        ),
    ])
    .unwrap();
    let expected = ["limiter.yaml", "limiter.d", "limits.yml", "overrides.yml"];
    assert_eq!(config.files, expected.map(Path::new));

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(
        path("limiter.yaml"),
        "limits: broken.yml\noverrides: missing.yml\n",
    )
    .unwrap();
    fs::write(path("broken.yml"), "a: [\n").unwrap();
    let errors = config::load(&path("limiter.yaml"), Timestamp::UNIX_EPOCH).unwrap_err();
    let expected = ["limiter.yaml", "limiter.d", "broken.yml", "missing.yml"];
    assert_eq!(errors.files(), expected.map(path));

    // A descriptor cannot be read again, so it is not among the files.
    let errors = config::load(Path::new("/dev/fd/99"), Timestamp::UNIX_EPOCH).unwrap_err();
    assert!(errors.files().is_empty());
}
