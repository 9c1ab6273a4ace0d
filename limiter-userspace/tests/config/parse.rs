//! Parses a configuration from a text, and passes interned names from one configuration to the
//! next.

use limiter_common::limit::LimitId;
use limiter_policy::{
    config,
    policy::{Names, Policy},
};
use proptest::prelude::*;

use super::harness::LIMIT;

#[test]
fn a_text_is_read_like_a_file() {
    let config = config::parse(LIMIT, "text").unwrap();
    assert_eq!(config.policy.limits.len(), 1);
    for (text, expected) in [
        ("", "text: is empty: limits or overrides are needed"),
        (
            "a\0",
            "text: is a binary file, not YAML: it has a NUL byte at offset 1",
        ),
        ("a: [", "text:1:4: invalid YAML: unclosed bracket '['"),
        (
            "limits: /etc/passwd",
            "text:1:9: cannot read the file '/etc/passwd': only a configuration file can name \
             other files",
        ),
    ] {
        let errors = config::parse(text, "text").unwrap_err();
        assert_eq!(errors.to_string(), expected);
    }
}

#[test]
fn a_limit_keeps_its_id_when_others_come_and_go() {
    let (first, names) = own(&["Web", "Dns"], &Names::default());
    assert_eq!(ids(&first), [("Dns", 32), ("Web", 33)]);
    let (second, names) = own(&["Web", "Abuse"], &names);
    assert_eq!(ids(&second), [("Web", 33), ("Abuse", 34)]);
    let (third, _) = own(&["Abuse", "Dns"], &names);
    assert_eq!(ids(&third), [("Dns", 32), ("Abuse", 34)]);
}

/// Returns a policy with limits of these names, and all names interned so far.
#[expect(clippy::unwrap_used, reason = "the text is right")]
fn own(limits: &[&str], names: &Names) -> (Policy, Names) {
    let rest = "{id: ipAddress, cost: packets, burst: 1, count: 1, period: 1s}";
    let limits: Vec<String> = limits
        .iter()
        .map(|name| format!("  {name}: {rest}"))
        .collect();
    let text = format!("limits:\n{}", limits.join("\n"));
    let config = config::parse(&text, "text").unwrap();
    config.policy.with_names(names, &[]).unwrap()
}

fn ids(policy: &Policy) -> Vec<(&str, u16)> {
    let limits = policy.limits.iter();
    limits
        .map(|limit| {
            let LimitId(id) = limit.id;
            (limit.name.as_str(), id)
        })
        .collect()
}

proptest! {
    #[test]
    fn ids_do_not_depend_on_the_order(
        limits in prop::collection::btree_set("[A-F][a-z]?", 1..20),
        order in any::<prop::sample::Index>(),
    ) {
        let mut limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let sorted = own(&limits, &Names::default());
        let middle = order.index(limits.len());
        limits.rotate_left(middle);
        prop_assert_eq!(own(&limits, &Names::default()), sorted);
    }
}
