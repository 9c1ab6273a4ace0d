//! Files that another node pushes, in place of a file of the folder.

use std::{env, fs, path::Path};

use jiff::Timestamp;
use limiter_policy::{
    config::{self, Config, PushedFile, check_pushed},
    lists::Feeds,
};

use crate::harness::LIMIT;

const LIMIT_OF_ALL: &str =
    "limits: {OfAll: {id: ipAddress, cost: packets, burst: 9, count: 9, period: 1s}}\n";

/// Loads a configuration with a limit, a list `office`, and these files in its folder; `fleet.yaml` is the pushed file.
#[expect(clippy::unwrap_used, reason = "temporary files can be written")]
fn load(files: &[(&str, &str)], pushed: &str) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limiter.yaml");
    fs::write(
        &file,
        format!("{LIMIT}lists: [{{name: office, cidr: 192.0.2.0/24}}]\n"),
    )
    .unwrap();
    let folder = config::folder_of(&file);
    fs::create_dir(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::write(directory.path().join("secret"), "hush\n").unwrap();
    let path = folder.join("fleet.yaml");
    let pushed = Some(PushedFile {
        path: &path,
        text: pushed,
    });
    let loaded = config::load_pushed(&file, &Feeds::new(), Timestamp::UNIX_EPOCH, pushed);
    loaded.map_err(|errors| {
        let prefix = format!("{}/", directory.path().display());
        errors.to_string().replace(&prefix, "")
    })
}

fn names(config: &Config) -> Vec<&str> {
    let limits = config.policy.limits.iter();
    let mut names: Vec<_> = limits.map(|limit| limit.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_pushed_file_stands_in_place_of_the_one_there() {
    let before = LIMIT_OF_ALL.replace("OfAll", "Before");
    let another = LIMIT_OF_ALL.replace("OfAll", "Another");
    for files in [
        &[][..],
        &[("fleet.yaml", before.as_str())],
        &[
            ("fleet.yaml", "no: sense"),
            ("10.yaml", &another),
            ("zz.yaml", "# none"),
        ],
    ] {
        let config = load(files, LIMIT_OF_ALL).unwrap();
        let has_another = files.len() > 2;
        let names = names(&config);
        assert!(
            names.contains(&"OfAll") && !names.contains(&"Before"),
            "{names:?}"
        );
        assert_eq!(names.contains(&"Another"), has_another);
        let is_there =
            |path: &std::path::PathBuf| path.ends_with(Path::new("limiter.d/fleet.yaml"));
        assert!(config.files.iter().any(is_there));
    }
    // A pushed file may use the node's own definitions.
    load(&[], &format!("{LIMIT_OF_ALL}exclude: office\n")).unwrap();
}

#[test]
fn a_pushed_file_names_no_others() {
    for (section, at) in [
        ("lists: [{name: secrets, file: secret}]", "2:31"),
        ("lists: [{name: secrets, file: /etc/hostname}]", "2:31"),
        ("overrides: secret", "2:12"),
        ("zones: {file: secret}", "2:15"),
        ("public-suffixes: {file: secret}", "2:25"),
    ] {
        let error = load(&[], &format!("{LIMIT_OF_ALL}{section}\n")).unwrap_err();
        let expected = format!("limiter.d/fleet.yaml:{at}: cannot read the file '");
        assert!(error.starts_with(&expected), "{error}");
        assert!(
            error.contains("a file that is pushed cannot name others"),
            "{error}"
        );
        assert!(!error.contains("hush"), "{error}");
    }
}

/// An error message would show this node's environment to the pushing node.
#[test]
fn a_pushed_file_has_no_variables() {
    let fleet = "fleet: {store: '${PATH}', name: '${PATH}', node: '${PATH}', key-file: '${PATH}'}";
    let error = load(&[], &format!("{LIMIT_OF_ALL}{fleet}\n")).unwrap_err();
    assert!(error.contains("invalid name '${PATH}'"), "{error}");
    assert!(!error.contains(&env::var("PATH").unwrap()), "{error}");
}

#[test]
fn a_pushed_file_says_nothing_of_a_node() {
    for section in [
        "interfaces: [eth0]",
        "mode: native",
        "buckets: {capacity: 4096}",
        "offenders: {capacity: 4096}",
        "bans: {capacity: 4096}",
        "state: /tmp/state",
        "metrics: off",
        "page: on",
        "control: {group: adm}",
        "fleet: {store: 'redis://store'}",
        "dns-cookies: {secret-file: secret}",
        "dns_cookies: {secret-file: secret}",
        "{<<: {fleet: {}}}",
    ] {
        let text = if section.starts_with('{') {
            section.to_owned()
        } else {
            format!("{LIMIT_OF_ALL}{section}\n")
        };
        let error = check_pushed(&text, "new.yaml").unwrap_err().to_string();
        assert!(
            error.starts_with("new.yaml:") && error.contains("cannot be pushed"),
            "{error}"
        );
        let error = load(&[], &text).unwrap_err();
        assert!(error.contains("cannot be pushed, only limits, "), "{error}");
    }
    for wrong in ["", "# nothing", "[]", "x"] {
        assert!(check_pushed(wrong, "new.yaml").is_err(), "{wrong}");
    }
    check_pushed(LIMIT_OF_ALL, "new.yaml").unwrap();
}
