//! Differences of lists, subscribers, and the action for malformed packets.

use super::*;
use crate::policy::List;

#[test]
fn subscribers_and_what_is_malformed() {
    check(
        |policy| {
            policy.malformed = Action::Pass;
            policy.own_connections = OwnConnections::Limit;
            policy.connections = CountedConnections::Tracked;
            policy.subscribers =
                BTreeMap::from([(7, vec!["198.51.100.0/25".parse().unwrap()]), (8, vec![])]);
        },
        &[
            "changed  subscriber 7",
            "         prefix    added: 198.51.100.0/25",
            "         prefix    removed: 198.51.100.0/24",
            "added    subscriber 8",
            "changed  malformed: drop → pass",
            "changed  own-connections: exempt → limit",
            "changed  connections: own → tracked",
        ],
    );
    check(
        |policy| policy.subscribers.clear(),
        &[
            "removed  subscriber 7",
            "         prefix    removed: 198.51.100.0/24",
        ],
    );
}

#[test]
fn lists_and_their_uses() {
    let list = |name: &str, prefixes: &[&str]| {
        let prefixes = prefixes.iter().map(|text| text.parse().unwrap());
        List::new(name.to_owned(), &prefixes.collect())
    };
    check(
        |policy| {
            policy.lists = vec![list("us", &["192.0.2.0/28", "2001:db8::/32"])];
            policy.exclude = vec!["us".to_owned()];
            policy.limits[0].block = vec!["us".to_owned()];
            policy.never_ban = vec!["us".to_owned()];
            policy.nat64 = vec!["2001:db8:64::/96".parse().unwrap()];
        },
        &[
            "changed  limit Web",
            "         block     none → us",
            "         buckets   stay as they are",
            "added    list us",
            "         prefixes  +2 −0",
            "changed  exclude: none → us",
            "changed  never-ban: none → us",
            "changed  nat64: none → 2001:db8:64::/96",
        ],
    );
    let old = Policy {
        lists: vec![
            list("us", &["192.0.2.0/28", "2001:db8::/32"]),
            list("gone", &["192.0.2.0/28"]),
            list("same", &["192.0.2.0/28"]),
        ],
        block: vec!["gone".to_owned(), "same".to_owned()],
        ..Policy::from(Vec::new())
    };
    let new = Policy {
        lists: vec![
            list("us", &["192.0.2.0/29", "192.0.3.0/24", "2001:db8::/32"]),
            list("same", &["192.0.2.0/28"]),
        ],
        block: vec!["same".to_owned()],
        ..Policy::from(Vec::new())
    };
    assert_eq!(
        Diff::between(&old, &new).to_string(),
        "removed  list gone\n         prefixes  +0 −1\nchanged  list us\n         prefixes  +2 −1\n\
         changed  block: gone, same → same\n"
    );
}
