//! The section `fleet`.

use std::{env, fs, os::unix::fs::PermissionsExt as _, process::Command};

use limiter_policy::{config::Config, fleet::read_keys};

use crate::harness::{LIMIT, load};

const KEY: &str = "0f0e0d0c0b0a09080706050403020100";

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

#[test]
fn sections() {
    let least = "{store: 'redis://127.0.0.1', name: edge, node: a, key-file: fleet.key}";
    let fleet = load_with(least, KEY).unwrap().fleet.unwrap();
    assert_eq!(fleet.store.to_string(), "redis://127.0.0.1:6379/0");
    assert_eq!((fleet.name.as_str(), fleet.node.as_str()), ("edge", "a"));
    assert_eq!((fleet.password_file, fleet.ca_file), (None, None));
    assert!(fleet.key_file.is_absolute());

    let most = "{store: 'rediss://edge@store:6380/1', name: edge, node: a.example, key-file: \
                fleet.key, password-file: store.password, ca-file: ca.pem}";
    let two = format!("{KEY}\n\n{}\n", KEY.to_uppercase());
    let fleet = load_with(most, &two).unwrap().fleet.unwrap();
    assert_eq!(fleet.store.to_string(), "rediss://edge@store:6380/1");
    assert!(fleet.password_file.is_some() && fleet.ca_file.is_some());
    assert_eq!(load_with("{node: a}", KEY).unwrap_err().len(), 3);

    let sentinels =
        "{store: 'redis://a,b:1', sentinel: main, name: edge, node: a, key-file: fleet.key}";
    let store = load_with(sentinels, KEY).unwrap().fleet.unwrap().store;
    assert_eq!(store.to_string(), "redis://a:26379,b:1/0 (Sentinel: main)");
    assert!(read_keys(&fleet.key_file).is_err(), "it was removed");
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
    const REST: &str = "name: edge, node: a, key-file: fleet.key";
    check(
        &format!("stor: 'redis://store', {REST}"),
        KEY,
        &["unknown field 'stor', did you mean 'store'?"],
    );
    check(
        "store: 'redis://store', node: a",
        KEY,
        &[
            "needs 'name', the fleet's name, the same on all nodes",
            "needs 'key-file', the file with the fleet's key",
        ],
    );
    check(
        &format!("store: 'redis://store', sentinel: 'a b', {REST}"),
        KEY,
        &["invalid sentinel 'a b', expected letters, digits, '-', '_' and '.'"],
    );
    check(
        &format!("store: 'redis://{}', {REST}", ["a"; 17].join(",")),
        KEY,
        &["invalid store: more than 16 servers"],
    );
    // The message shows no part of the URL: wherever the mistake is, the URL may hold a password.
    check(
        &format!("store: 'rediss:/:secret@store', {REST}"),
        KEY,
        &["invalid store: expected an address, such as \
             'rediss://user@store.example:6379/0'"],
    );
    check(
        &format!("store: 'redis://user:0f0e0d0c@store', {REST}"),
        KEY,
        &["invalid store: its password belongs in 'password-file', not in its address"],
    );
    check(
        &format!("store: 'redis://edge@store', {REST}"),
        KEY,
        &["needs 'password-file', the file with the password of the store's user"],
    );
    check(
        &format!("store: 'redis://store', ca-file: ca.pem, {REST}"),
        KEY,
        &["ca-file has no effect without TLS: begin the store's address with 'rediss://'"],
    );
    check(
        "store: 'redis://store', name: Edge, node: a, key-file: fleet.key",
        KEY,
        &[
            "invalid name 'Edge', expected 1 to 63 characters of a-z, 0-9, '-', '_' and '.', of \
             which the first is a letter or a digit",
        ],
    );
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

/// Each text has variables, an error names the missing one and its position, and no value is shown of the store.
#[test]
fn variables() {
    let fields = [
        "store",
        "sentinel",
        "name",
        "node",
        "key-file",
        "password-file",
        "ca-file",
    ];
    for field in fields.into_iter().chain(["accept-policy"]) {
        let mut lines = vec![format!("  {field}: x-${{LIMITER_UNSET}}")];
        for (other, value) in fields.into_iter().zip([
            "rediss://store",
            "main",
            "edge",
            "a",
            "fleet.key",
            "store.password",
            "ca.pem",
        ]) {
            if other != field {
                lines.push(format!("  {other}: {value}"));
            }
        }
        let errors = load_with(&format!("\n{}", lines.join("\n")), KEY).unwrap_err();
        let at = format!("limiter.yaml:3:{}: ", field.len() + 7);
        let expected = "the variable 'LIMITER_UNSET' is not set: a service has it from `Environment=`, a command \
                        from its shell";
        assert_eq!(errors, [at + expected], "{field}");
    }
    let path = env::var("PATH").unwrap();
    check(
        "store: 'redis://store', name: edge, node: a, key-file: 'none/${PATH}'",
        KEY,
        &[&format!(
            "the file 'none/{path}' cannot be read: No such file or directory (os error 2)"
        )],
    );
    check(
        "store: 'redis://${PATH}@store', name: edge, node: a, key-file: fleet.key",
        KEY,
        &["invalid store: expected an address, such as 'rediss://user@store.example:6379/0'"],
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
        let output = command
            .arg("check")
            .arg(&file)
            .env("SITE", site)
            .output()
            .unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        let expected = format!("fleet edge, node {site}-1, redis://store:6379/0\n");
        assert!(
            output.status.success() && shown.contains(&expected),
            "{shown}"
        );
    }
}

#[test]
fn files_of_policies() {
    let with = |file: &str| {
        format!(
            "store: 'redis://store', name: edge, node: a, key-file: fleet.key, accept-policy: {file}"
        )
    };
    let fleet = load_with(&format!("{{{}}}", with("fleet.yaml")), KEY)
        .unwrap()
        .fleet
        .unwrap();
    assert_eq!(fleet.accept_policy.as_deref(), Some("fleet.yaml"));
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
        check(&with(wrong), KEY, &[&expected]);
    }
}

#[test]
fn known_sources() {
    let with = |more: &str| {
        format!("store: 'redis://store', name: edge, node: a, key-file: fleet.key{more}")
    };
    for (more, expected) in [
        ("", true),
        (", known-sources: on", true),
        (", known-sources: off", false),
    ] {
        let fleet = load_with(&format!("{{{}}}", with(more)), KEY).unwrap();
        assert_eq!(fleet.fleet.unwrap().known_sources, expected, "{more}");
    }
    check(
        &with(", known-sources: often"),
        KEY,
        &["unknown known-sources 'often', must be one of on, off"],
    );
}

#[test]
fn wrong_files() {
    let with = |file: &str| format!("store: 'redis://store', name: edge, node: a, {file}");
    check(
        &with("key-file: none"),
        KEY,
        &["the file 'none' cannot be read: No such file or directory (os error 2)"],
    );
    check(
        &with("key-file: open"),
        KEY,
        &["the file 'open' is open to others than its owner (mode 0644): `chmod 600` it"],
    );
    let file = "key-file: fleet.key";
    check(
        &with(file),
        &KEY[1..],
        &[
            "the file 'fleet.key' has no key of a fleet in line 1: a fleet's key has at least 32 \
             bytes, this one 31: make one with `openssl rand -hex 32`",
        ],
    );
    check(
        &with(file),
        "",
        &["the file 'fleet.key' is empty: expected a secret on its first line"],
    );
    check(
        &with(file),
        &format!("{KEY}\n").repeat(3),
        &[
            "the file 'fleet.key' has more than two keys: the current one, and one more that is \
             believed",
        ],
    );
    check(
        &with("key-file: fleet.key, password-file: empty.password"),
        KEY,
        &["the file 'empty.password' is empty: expected a secret on its first line"],
    );
    check(
        &with("key-file: fleet.key, password-file: fleet.key"),
        &format!("{KEY}\n").repeat(2),
        &["the file 'fleet.key' has more than one line"],
    );
}
