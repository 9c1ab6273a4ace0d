//! The example configurations.

use std::{fs, path::Path};

use limiter_common::limit::LimitId;
use limiter_userspace::{config, policy::Names};

use super::harness::{SECOND, rate};

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
            let config =
                config::load(&path, &Names::default()).unwrap_or_else(|errors| panic!("{errors}"));
            assert!(!config.policy.limits.is_empty());
            loaded += 1;
        } else {
            assert!(
                NAMED.contains(&path.file_name().unwrap().to_str().unwrap()),
                "{path:?}"
            );
        }
    }
    assert_eq!(loaded, 5);
}

/// The files that configs/with-files.yaml names.
const NAMED: [&str; 2] = ["boulder-defaults.yml", "boulder-overrides.yml"];

#[test]
fn the_default_configuration_is_the_demonstration_s() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/limiter.yaml");
    let config = config::load(&path, &Names::default()).unwrap();
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
        (one.id.to_string().as_str(), one.rate),
        ("10.77.0.4", rate(1000, 1000, SECOND))
    );
    assert!(one.comment.is_some());
}
