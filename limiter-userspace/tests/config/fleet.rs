//! The section `fleet`.

use std::{env, fs, os::unix::fs::PermissionsExt as _, process::Command};

use limiter_policy::{config::Config, fleet::Fleet};

use crate::harness::{LIMIT, load};

const KEY: &str = "0f0e0d0c0b0a09080706050403020100";

/// A store, and names.
const LEAST: &str = "store: 'redis://store', name: edge, node: a";

/// Loads a section. Beside it lie `fleet.key`, `store.password`, `ca.pem` and `open`; the last two
/// are readable by every user.
fn load_with(section: &str, key: &str) -> Result<Config, Vec<String>> {
    let configuration = format!("{LIMIT}fleet: {section}\n");
    load(&[
        ("limiter.yaml", configuration.as_bytes()),
        ("fleet.key", key.as_bytes()),
        ("store.password", b"hush\n"),
        ("empty.password", b"\n"),
        ("ca.pem", b"-----BEGIN CERTIFICATE-----\n"),
        ("open", key.as_bytes()),
    ])
}

#[expect(clippy::unwrap_used, reason = "the tests' sections are right")]
fn fleet(fields: &str) -> Fleet {
    let config = load_with(&format!("{{{fields}, key-file: fleet.key}}"), KEY);
    config.unwrap().fleet.unwrap()
}

#[test]
fn sections() {
    let least = fleet(LEAST);
    assert_eq!(least.store.to_string(), "redis://store:6379/0");
    assert_eq!((least.name.as_str(), least.node.as_str()), ("edge", "a"));
    assert_eq!((least.password_file, least.ca_file), (None, None));
    assert_eq!((least.accept_policy, least.known_sources), (None, true));
    assert!(least.key_file.is_absolute());

    let most = fleet(
        "store: 'rediss://edge@a,b:6380/1', sentinel: main, name: edge, node: a.example, password-file: \
         store.password, ca-file: ca.pem, accept-policy: fleet.yaml, known-sources: off",
    );
    assert_eq!(
        most.store.to_string(),
        "rediss://edge@a:26379,b:6380/1 (Sentinel: main)"
    );
    assert!(most.password_file.is_some() && most.ca_file.is_some());
    assert_eq!(most.accept_policy.as_deref(), Some("fleet.yaml"));
    assert!(!most.known_sources && fleet(&format!("{LEAST}, known-sources: on")).known_sources);
    let two = format!("{KEY}\n\n{}\n", KEY.to_uppercase());
    assert!(load_with(&format!("{{{LEAST}, key-file: fleet.key}}"), &two).is_ok());
}

#[track_caller]
#[expect(clippy::unwrap_used, reason = "the tests' sections are wrong")]
fn check(fields: &str, key: &str, expected: &[&str]) {
    let errors = load_with(&format!("{{{fields}}}"), key).unwrap_err();
    let errors: Vec<_> = errors
        .iter()
        .map(|error| error.strip_prefix("limiter.yaml:2:").unwrap())
        .map(|error| error.split_once(": ").unwrap().1)
        .collect();
    assert_eq!(errors, expected);
    assert!(!errors.iter().any(|error| error.contains(&KEY[..8])));
}

#[test]
fn wrong_sections() {
    check(
        "store: 'redis://store', node: a",
        KEY,
        &[
            "needs 'name', the fleet's name, the same on all nodes",
            "needs 'key-file', the file with the fleet's key",
        ],
    );
    let rest = "name: edge, node: a, key-file: fleet.key";
    // The message shows no part of the URL: wherever the mistake is, the URL may hold a password.
    for (fields, expected) in [
        (
            "stor: 'redis://store'",
            "unknown field 'stor', did you mean 'store'?",
        ),
        (
            "store: 'redis://store', sentinel: 'a b'",
            "invalid sentinel 'a b', expected letters, digits, '-', '_' and '.'",
        ),
        (
            "store: 'redis://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a'",
            "invalid store: more than 16 servers",
        ),
        (
            "store: 'rediss:/:secret@store'",
            "invalid store: expected an address, such as 'rediss://user@store.example:6379/0'",
        ),
        (
            "store: 'redis://${PATH}@store'",
            "invalid store: expected an address, such as 'rediss://user@store.example:6379/0'",
        ),
        (
            "store: 'redis://user:0f0e0d0c@store'",
            "invalid store: its password belongs in 'password-file', not in its address",
        ),
        (
            "store: 'redis://edge@store'",
            "needs 'password-file', the file with the password of the store's user",
        ),
        (
            "store: 'redis://store', ca-file: ca.pem",
            "ca-file has no effect without TLS: begin the store's address with 'rediss://'",
        ),
        (
            "store: 'redis://store', known-sources: often",
            "unknown known-sources 'often', must be one of on, off",
        ),
    ] {
        check(&format!("{fields}, {rest}"), KEY, &[expected]);
    }
    check(
        "store: 'redis://store', name: Edge, node: a, key-file: fleet.key",
        KEY,
        &[
            "invalid name 'Edge', expected 1 to 63 characters of a-z, 0-9, '-', '_' and '.', of \
             which the first is a letter or a digit",
        ],
    );
    for wrong in [
        "/etc/limiter/fleet.yaml",
        "../fleet.yaml",
        ".fleet.yaml",
        "fleet.yml",
    ] {
        let expected = format!(
            "accept-policy '{wrong}' must be the name of a file in the folder beside the \
             configuration, such as 'fleet.yaml'"
        );
        let fields = format!("{LEAST}, key-file: fleet.key, accept-policy: {wrong}");
        check(&fields, KEY, &[&expected]);
    }
}

#[test]
fn a_node_is_named_by_its_host() {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim_end();
    let section = "{store: 'redis://store', name: edge, key-file: fleet.key}";
    match load_with(section, KEY) {
        Ok(config) => {
            let node = config.fleet.unwrap().node.to_string();
            let first = host.split('.').next();
            assert!(
                node == host || Some(node.as_str()) == first,
                "{node} {host}"
            );
        }
        Err(errors) => {
            let expected = format!("'{host}', the host's name, cannot be it");
            assert!(
                errors.len() == 1 && errors[0].contains(&expected),
                "{errors:?}"
            );
        }
    }
}

/// Each text has variables, and an error names the missing one and its position.
#[test]
fn variables() {
    let fields = [
        ("store", "rediss://store"),
        ("sentinel", "main"),
        ("name", "edge"),
        ("node", "a"),
        ("key-file", "fleet.key"),
        ("password-file", "store.password"),
        ("ca-file", "ca.pem"),
    ];
    let names = fields.iter().map(|(field, _)| *field);
    for field in names.chain(["accept-policy"]) {
        let others = fields.iter().filter(|(other, _)| *other != field);
        let others = others.map(|(other, value)| format!("\n  {other}: {value}"));
        let others = others.collect::<String>();
        let errors = load_with(&format!("\n  {field}: x-${{LIMITER_UNSET}}{others}"), KEY);
        let at = format!("limiter.yaml:3:{}: ", field.len() + 7);
        let expected = "the variable 'LIMITER_UNSET' is not set: a service has it from `Environment=`, a command \
                        from its shell";
        assert_eq!(errors.unwrap_err(), [at + expected], "{field}");
    }
    let path = env::var("PATH").unwrap();
    check(
        &format!("{LEAST}, key-file: 'none/${{PATH}}'"),
        KEY,
        &[&format!(
            "the file 'none/{path}' cannot be read: No such file or directory (os error 2)"
        )],
    );
}

/// One file fits all nodes: each has its own environment.
#[test]
fn the_environment_names_the_node() {
    let directory = tempfile::tempdir().unwrap();
    let [file, key] = ["limiter.yaml", "fleet.key"].map(|name| directory.path().join(name));
    let section = "{store: 'redis://store', name: edge, node: '${SITE}-1', key-file: fleet.key}";
    fs::write(&file, format!("{LIMIT}fleet: {section}\n")).unwrap();
    fs::write(&key, KEY).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    for site in ["fra", "ams"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_limiter"));
        let command = command.arg("check").arg(&file).env("SITE", site);
        let output = command.output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        let expected = format!("fleet edge, node {site}-1, redis://store:6379/0\n");
        assert!(
            output.status.success() && shown.contains(&expected),
            "{shown}"
        );
    }
}

#[test]
fn wrong_files() {
    let three = format!("{KEY}\n").repeat(3);
    for (files, key, expected) in [
        (
            "key-file: none",
            KEY,
            "the file 'none' cannot be read: No such file or directory (os error 2)",
        ),
        (
            "key-file: open",
            KEY,
            "the file 'open' is open to others than its owner (mode 0644): `chmod 600` it",
        ),
        (
            "key-file: fleet.key",
            &KEY[1..],
            "the file 'fleet.key' has no key of a fleet in line 1: a fleet's key has at least 32 \
             bytes, this one 31: make one with `openssl rand -hex 32`",
        ),
        (
            "key-file: fleet.key",
            "",
            "the file 'fleet.key' is empty: expected a secret on its first line",
        ),
        (
            "key-file: fleet.key",
            &three,
            "the file 'fleet.key' has more than two keys: the current one, and one more that is \
             believed",
        ),
        (
            "key-file: fleet.key, password-file: empty.password",
            KEY,
            "the file 'empty.password' is empty: expected a secret on its first line",
        ),
        (
            "key-file: fleet.key, password-file: fleet.key",
            &three[KEY.len() + 1..],
            "the file 'fleet.key' has more than one line",
        ),
    ] {
        check(&format!("{LEAST}, {files}"), key, &[expected]);
    }
}
