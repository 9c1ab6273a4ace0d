//! The example configurations.

use std::{fs, path::Path};

use jiff::Timestamp;
use limiter_common::limit::{Cost, IdFormat};
use limiter_policy::{
    config::{self, AttachMode, Buckets, Config, Offenders},
    policy::Policy,
};

use super::harness::{SECOND, rate};

#[test]
fn the_example_configurations_load() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let mut loaded = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // Files with another extension are referenced by configurations.
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            let config = config::load(&path, Timestamp::UNIX_EPOCH)
                .unwrap_or_else(|errors| panic!("{errors}"));
            assert_spares_replies(&config, &path);
            assert_same_when_read_again(&config);
            loaded += 1;
        } else {
            assert!(
                NAMED.contains(&path.file_name().unwrap().to_str().unwrap()),
                "{path:?}"
            );
        }
    }
    assert_eq!(loaded, 12);
}

/// Fails if an example would slow down the host's own downloads: limits of sources may only count packets to ports
/// below 32768. By default Linux picks higher ports for its own connections.
fn assert_spares_replies(config: &Config, path: &Path) {
    const TCP_AND_UDP: [u8; 2] = [6, 17];
    for limit in &config.policy.limits {
        let is_of_sources = !matches!(limit.id_format, IdFormat::RegId);
        let counts_replies = matches!(limit.cost, Cost::Packets | Cost::Bytes);
        let matching = &limit.matching;
        let protocols = limit.protocols();
        let has_ports =
            protocols.is_empty() || protocols.iter().any(|one| TCP_AND_UDP.contains(one));
        let are_new = matching
            .tcp_flags
            .is_some_and(|flags| flags.set & 0x02 != 0 && flags.clear & 0x10 != 0);
        if is_of_sources && counts_replies && has_ports && !are_new {
            let ports = &matching.destination_ports;
            assert!(
                !ports.is_empty() && ports.iter().all(|ports| *ports.end() < 32_768),
                "{}: {} counts replies",
                path.display(),
                limit.name
            );
        }
    }
}

/// Fails unless the parts that state files and requests carry survive serialization.
fn assert_same_when_read_again(config: &Config) {
    let kept = (
        &config.policy,
        config.buckets,
        config.offenders,
        config.mode,
    );
    let text = serde_json::to_string(&kept).expect("it serializes");
    let read: (Policy, Buckets, Offenders, AttachMode) =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
    assert_eq!((&read.0, read.1, read.2, read.3), kept);
}

/// The files that configs/with-files.yaml and configs/lists.yaml name.
const NAMED: [&str; 5] = [
    "boulder-defaults.yml",
    "boulder-overrides.yml",
    "lists-abuse.netset",
    "lists-drop.json",
    "lists-tor-exits.txt",
];

#[test]
fn the_examples_for_servers_know_their_clients() {
    for name in ["dns-server", "web-server", "game-server"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/{name}.yaml"));
        let config = config::load(&path, Timestamp::UNIX_EPOCH).unwrap();
        let limits = || config.policy.limits.iter();
        let shared = limits().filter(|limit| limit.reserve.is_some());
        assert!(shared.count() > 0, "{name}");
        // New clients that are refused get an answer wherever one exists that forgers cannot abuse.
        for limit in limits().filter(|limit| limit.reserve.is_some()) {
            assert_eq!(
                limit.deny.is_some(),
                !["GamePackets", "Strangers"].contains(&limit.name.as_str()),
                "{}",
                limit.name
            );
        }
        for limit in limits().filter(|limit| limit.reserve.is_none()) {
            // No other limit may drop known clients because a bucket shared by all sources is empty.
            assert!(
                !matches!(limit.id_format, IdFormat::Total),
                "{name}: {}",
                limit.name
            );
        }
    }
}

#[test]
fn the_default_configuration_is_the_demonstration_s() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/limiter.yaml");
    let config = config::load(&path, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(config.interfaces, Vec::new());
    let limit = |name: &str| {
        let mut limits = config.policy.limits.iter();
        limits.find(|limit| limit.name == name).unwrap()
    };
    let of_address = limit("ServicePacketsPerIPAddress");
    assert_eq!(of_address.default, Some(rate(200, 200, SECOND)));
    let of_range = limit("ServicePacketsPerIPv6Range");
    assert_eq!(of_range.default, Some(rate(400, 400, SECOND)));
    let connections = limit("NewConnectionsPerIPAddress");
    assert_eq!(connections.default, Some(rate(50, 50, SECOND)));
    let [one] = of_address.overrides.as_slice() else {
        panic!("{:?}", of_address.overrides);
    };
    assert_eq!(
        (one.id.to_string().as_str(), one.rate),
        ("10.77.0.4", rate(1000, 1000, SECOND))
    );
    assert!(one.comment.is_some());
}
