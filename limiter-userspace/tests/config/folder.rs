//! The folder beside a configuration file, with files that are joined to it.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use jiff::Timestamp;
use limiter_policy::{
    config::{self, Config},
    policy::Limit,
};

use super::harness::load;

const MAIN: &str = "\
interfaces: [eth0]
limits:
  PacketsPerIPAddress: {burst: 5, count: 5, period: 1s}
lists: [{name: ours, cidr: [192.0.2.0/24]}]
never-ban: ours
";

fn joined(files: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let main = [("limiter.yaml", MAIN.as_bytes())];
    let files = files
        .iter()
        .map(|(name, text)| (*name, text.as_bytes()))
        .collect::<Vec<_>>();
    load(&[&main[..], &files].concat())
}

fn refused(files: &[(&str, &str)]) -> Vec<String> {
    joined(files).expect_err("these files are not right")
}

#[test]
fn sections_of_what_has_a_name_are_joined() {
    let config = joined(&[
        (
            "limiter.d/20-dns.yaml",
            "limits:\n  DnsQueries: {id: ipAddress, cost: packets, match: {destination-port: 53}, \
             burst: 9, count: 9, period: 1s}\nnever_ban: [partners, 203.0.113.7]\nmode: generic\n",
        ),
        (
            "limiter.d/10-partners.yaml",
            "# first\nlists:\n  - {name: partners, cidr: [198.51.100.0/24]}\nexclude: partners\n\
             overrides:\n  - PacketsPerIPAddress: {burst: 7, count: 7, period: 1s, ids: [{id: 192.0.2.9}]}\n",
        ),
        ("limiter.d/99-none.yaml", "# all of it is commented out\n"),
        ("limiter.d/README", "not YAML: ["),
        ("limiter.d/.10-partners.yaml.swp", "not YAML: ["),
        ("limiter.d/30-old.yaml.bak", "not YAML: ["),
        ("other.d/10.yaml", "not YAML: ["),
    ])
    .unwrap();
    let names: Vec<_> = config
        .policy
        .limits
        .iter()
        .map(|limit| &limit.name)
        .collect();
    assert_eq!(names, ["PacketsPerIPAddress", "DnsQueries"]);
    let overrides = |limit: &Limit| limit.overrides.len();
    assert_eq!(config.policy.limits.iter().map(overrides).sum::<usize>(), 1);
    assert_eq!(config.policy.exclude, ["partners"]);
    assert_eq!(config.policy.never_ban, ["ours", "partners", "(never-ban)"]);
    assert_eq!(config.mode, config::AttachMode::Generic);
    assert_eq!(config.interfaces, ["eth0".parse().unwrap()]);
    let read: Vec<_> = config
        .files
        .iter()
        .map(|file| file.to_str().unwrap())
        .collect();
    assert_eq!(
        read,
        [
            "limiter.yaml",
            "limiter.d",
            "limiter.d/10-partners.yaml",
            "limiter.d/20-dns.yaml",
            "limiter.d/99-none.yaml"
        ]
    );
}

#[test]
fn what_is_there_twice_names_both_files() {
    let limit = "limits:\n  PacketsPerIPAddress: {burst: 1, count: 1, period: 1s}\n";
    assert_eq!(
        refused(&[("limiter.d/10.yaml", limit)]),
        ["limiter.d/10.yaml:2:3: duplicate 'PacketsPerIPAddress', first at limiter.yaml:3:3"]
    );
    assert_eq!(
        refused(&[
            ("limiter.d/10.yaml", "mode: generic\n"),
            (
                "limiter.d/20.yaml",
                "# again\nmode: native\ninterfaces: [eth1]\n"
            ),
        ]),
        [
            "limiter.d/20.yaml:2:1: duplicate 'mode', first at limiter.d/10.yaml:1:1",
            "limiter.d/20.yaml:3:1: duplicate 'interfaces', first at limiter.yaml:1:1",
        ]
    );
    // In one file it is as ever.
    assert_eq!(
        refused(&[(
            "limiter.d/10.yaml",
            "lists: [{name: a, cidr: 192.0.2.1}]\nlists: []\n"
        )]),
        ["limiter.d/10.yaml:2:1: duplicate 'lists', first at 1:1"]
    );
    assert_eq!(
        refused(&[(
            "limiter.d/10.yaml",
            "lists: [{name: ours, cidr: 192.0.2.1}, {name: a, cidr: 192.0.2.2}, {name: a, cidr: 192.0.2.3}]\n"
        )]),
        [
            "limiter.d/10.yaml:1:16: duplicate list 'ours', first at limiter.yaml:4:16",
            "limiter.d/10.yaml:1:75: duplicate list 'a', first at 1:47",
        ]
    );
}

#[test]
fn one_bad_file_refuses_all_and_is_named() {
    assert_eq!(
        refused(&[
            ("limiter.d/10.yaml", "limits: {\n"),
            ("limiter.d/20.yaml", ""),
        ])
        .len(),
        2
    );
    assert_eq!(
        refused(&[(
            "limiter.d/10.yaml",
            "limits:\n  Dns: {id: ipAddress, cost: packets, burst: x, count: 1, period: 1s}\nlimit: {}\n"
        )]),
        [
            "limiter.d/10.yaml:2:46: expected a whole number, such as 250 or 10k, found the text 'x'",
            "limiter.d/10.yaml:3:1: unknown field 'limit', did you mean 'limits'?",
        ]
    );
    // One file's reference to another, at its place.
    assert_eq!(
        refused(&[("limiter.d/10.yaml", "# a list\nblock: our\n")]),
        ["limiter.d/10.yaml:2:8: unknown list 'our', did you mean 'ours'?"]
    );
    assert_eq!(
        refused(&[("limiter.d/10.yaml", "- a\n")]),
        ["limiter.d/10.yaml:1:1: expected a map of sections"]
    );
    assert_eq!(
        refused(&[("limiter.d/10.yaml", "limits: limits.yaml\n")]),
        [
            "limiter.d/10.yaml:1:1: 'limits' has another form than at limiter.yaml:2:1: in several files \
          it must be a map in each, or a list in each, and no file's name"
        ]
    );
    assert_eq!(
        refused(&[("limiter.d/10.yml", "exclude: ours\n")]),
        [
            "limiter.d/10.yml: is not read here, since its name ends in .yml: rename it to end in .yaml"
        ]
    );
    assert_eq!(
        refused(&[("limiter.d", "exclude: ours\n")]),
        ["limiter.d: is not a directory: its files would be joined to the configuration"]
    );
}

#[test]
fn a_file_that_everybody_may_write_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (main, folder) = (
        directory.path().join("a.yaml"),
        directory.path().join("a.d"),
    );
    let file = folder.join("10.yaml");
    fs::write(&main, MAIN).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(&file, "exclude: ours\n").unwrap();
    let load = || config::load(&main, Timestamp::UNIX_EPOCH);
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    assert!(load().is_ok());
    for (path, mode) in [(&folder, 0o755), (&file, 0o644)] {
        allow(path, mode | 0o002);
        let expected = "may be written by everybody, who could lock out anybody: `chmod o-w` it";
        let error = load().unwrap_err().to_string();
        assert_eq!(error, format!("{}: {expected}", path.display()));
        allow(path, mode);
    }
    assert!(load().is_ok());
}
