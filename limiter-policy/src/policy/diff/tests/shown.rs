//! A whole difference, as text and as JSON.

use std::net::Ipv4Addr;

use super::*;
use crate::policy::List;

#[test]
fn long_lists_are_cut() {
    let many = |policy: &mut Policy| {
        policy.limits[0].overrides = (0..20_000u32)
            .map(|number| overridden(&Ipv4Addr::from_bits(number << 4).to_string(), 9))
            .collect();
        policy.subscribers = (100..111).map(|number| (number, vec![])).collect();
    };
    let old = Policy::from(vec![limit("Web")]);
    let mut new = old.clone();
    many(&mut new);
    let diff = Diff::between(&old, &new);
    // The two old ones are removed.
    assert_eq!(diff.limits[0].overrides.len(), 20_002);
    let shown = diff.to_string();
    assert_eq!(shown.lines().count(), 1 + 10 + 1 + 1 + 10 + 1, "{shown}");
    assert!(
        shown.contains("         override  … and 19 992 more\n"),
        "{shown}"
    );
    assert!(shown.ends_with("\nsubscribers: … and 1 more\n"), "{shown}");
}

#[test]
fn as_json() {
    let old = Policy::from(vec![limit("Web")]);
    let mut new = old.clone();
    new.limits[0].mode = Mode::Off;
    new.limits[0].overrides.pop();
    new.malformed = Action::Pass;
    new.lists = vec![List::new(
        "us".to_owned(),
        &vec!["192.0.2.0/24".parse().unwrap()],
    )];
    new.block = vec!["us".to_owned()];
    let limit = |mode| {
        serde_json::json!({
            "name": "Web", "id": 32, "id_format": "ipAddress", "cost": "packets", "match": Match::default(), "mode": mode,
            "default": {"burst": 20, "count": 10, "period_ns": 1_500_000_000}, "overrides": [],
        })
    };
    assert_eq!(
        serde_json::to_value(Diff::between(&old, &new)).unwrap(),
        serde_json::json!({
            "limits": [{
                "limit": "Web",
                "change": "changed",
                "old": limit("enforce"),
                "new": limit("off"),
                "parts": ["mode"],
                "overrides": [{"id": "192.0.2.2", "old": rate(2), "new": null}],
                "buckets": "debt-in-tokens",
            }],
            "subscribers": [],
            "sieves": [],
            "malformed": {"old": "drop", "new": "pass"},
            "own_connections": null,
            "until_known": null,
            "known_names": null,
            "public_suffixes": null,
            "server_names": null,
            "connections": null,
            "lists": [{
                "list": "us", "change": "added", "added": ["192.0.2.0/24"], "removed": [],
            }],
            "exclude": null,
            "block": {"old": [], "new": ["us"]},
            "never_ban": null,
            "nat64": null,
            "standing": null,
            "answers": null,
            "dns_cookies": null,
            "zones": null,
        })
    );
}
