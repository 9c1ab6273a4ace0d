use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::config;

const CONFIGURATION: &str = "
lists:
  - {name: us, cidr: [192.0.2.0/28, '2001:db8::/64']}
  - {name: low, cidr: [192.0.2.0/25, 198.51.100.1]}
  - {name: high, cidr: [192.0.2.128/25, 198.51.100.3]}
  - {name: idle, cidr: [192.0.2.7]}
exclude: us
block: [low, high]
limits:
  Web: {id: ipAddress, cost: packets, burst: 1, count: 1, period: 1s, exclude: high, block: idle}
";

fn policy() -> Policy {
    let config = config::parse(CONFIGURATION, "test");
    config.unwrap_or_else(|errors| panic!("{errors}")).policy
}

#[track_caller]
fn check(asked: &str, lists: &[&str], excluded: Option<Extent>, blocked: Option<Extent>) {
    let findings = policy().findings(asked.parse().unwrap());
    let shown = findings.lists.iter().map(|found| {
        let ListFinding {
            list, prefix, more, ..
        } = found;
        format!("{list} {prefix} +{more} {:?}", found.extent)
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, lists, "{asked}");
    assert_eq!(findings.listing, Extents { excluded, blocked }, "{asked}");
}

#[test]
fn findings_of_each_list() {
    use Extent::{All, Part};
    check("203.0.113.0/24", &[], None, None);
    check("2001:db8:1::/64", &[], None, None);
    check(
        "192.0.2.7/32",
        &[
            "us 192.0.2.0/28 +0 All",
            "low 192.0.2.0/25 +0 All",
            "idle 192.0.2.7/32 +0 All",
        ],
        Some(All),
        None,
    );
    check(
        "192.0.2.200/32",
        &["high 192.0.2.128/25 +0 All"],
        None,
        Some(All),
    );
    // The two blocked halves are the whole, but a part is excluded.
    check(
        "192.0.2.0/24",
        &[
            "us 192.0.2.0/28 +0 Part",
            "low 192.0.2.0/25 +0 Part",
            "high 192.0.2.128/25 +0 Part",
            "idle 192.0.2.7/32 +0 Part",
        ],
        Some(Part),
        Some(Part),
    );
    check(
        "198.51.100.0/30",
        &[
            "low 198.51.100.1/32 +0 Part",
            "high 198.51.100.3/32 +0 Part",
        ],
        None,
        Some(Part),
    );
    check(
        "2001:db8::/32",
        &["us 2001:db8::/64 +0 Part"],
        Some(Part),
        None,
    );
    check("::/0", &["us 2001:db8::/64 +0 Part"], Some(Part), None);
}

#[test]
fn what_lists_are_for() {
    let policy = policy();
    let check = |list, expected: &[&str]| {
        let uses = policy.uses_of(list);
        let shown: Vec<String> = uses.iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected, "{list}");
    };
    check("us", &["exclude"]);
    check("high", &["block", "limits.Web.exclude"]);
    check("idle", &["limits.Web.block"]);
    check("none", &[]);
    let findings = policy.findings("192.0.2.7/32".parse().unwrap());
    assert_eq!(
        findings.limits,
        [LimitFinding {
            limit: "Web".to_owned(),
            mode: Mode::Enforce,
            listing: Extents {
                excluded: None,
                blocked: Some(Extent::All),
            },
        }]
    );
}

/// A limit that counts no packets of an address does not block it either.
#[test]
fn limits_that_have_nothing_to_do_with_it() {
    let own = |name: &str, more: &str| {
        format!("{name}: {{cost: packets, burst: 1, count: 1, period: 1s, block: all, {more}}}")
    };
    let limits = [
        own("Off", "id: ipAddress, mode: off"),
        own("Ranges", "id: ipv6RangeCIDR"),
        own("Customers", "id: regId"),
        own("All", "id: total"),
    ];
    let configuration = format!(
        "lists: [{{name: all, cidr: [0.0.0.0/0, '::/0']}}]\nlimits: {{{}}}\n\
         subscribers: {{7: 192.0.2.0/25}}\n",
        limits.join(", ")
    );
    let config = config::parse(&configuration, "test");
    let policy = config.unwrap_or_else(|errors| panic!("{errors}")).policy;
    for (asked, expected) in [
        ("192.0.2.1/32", &["All", "Customers"][..]),
        ("192.0.2.0/24", &["All", "Customers"]),
        ("192.0.2.128/25", &["All"]),
        ("2001:db8::1/128", &["All", "Ranges"]),
    ] {
        let findings = policy.findings(asked.parse().unwrap());
        let limits = findings.limits.iter().map(|found| found.limit.as_str());
        assert_eq!(limits.collect::<Vec<_>>(), expected, "{asked}");
    }
}

/// Generates prefixes crowded into one /24, so that they nest, touch and repeat.
fn prefix() -> impl Strategy<Value = IpNet> {
    (any::<u8>(), 24u8..=32).prop_map(|(last, length)| {
        IpNet::new([192, 0, 2, last].into(), length)
            .unwrap()
            .trunc()
    })
}

proptest! {
    /// The findings about a prefix agree with [`Policy::listing_of`] for each of its addresses.
    #[test]
    fn a_prefix_is_its_addresses(
        lists in prop::collection::vec(prop::collection::vec(prefix(), 0..6), 4),
        asked in prefix(),
    ) {
        let names: Vec<_> = (0..lists.len()).map(|number| format!("list{number}")).collect();
        let policy = Policy {
            lists: names
                .iter()
                .zip(&lists)
                .map(|(name, prefixes)| List::new(name.clone(), prefixes))
                .collect(),
            exclude: names[..2].to_vec(),
            block: names[2..].to_vec(),
            ..Policy::from(Vec::new())
        };
        let extent = |holds: &dyn Fn(IpAddr) -> bool| {
            // `hosts` would leave out the first and the last.
            let all: Vec<_> = (0..=255)
                .map(|last| IpAddr::from([192, 0, 2, last]))
                .filter(|address| asked.contains(address))
                .collect();
            let some = all.iter().filter(|address| holds(**address)).count();
            match some {
                0 => None,
                _ if some == all.len() => Some(Extent::All),
                _ => Some(Extent::Part),
            }
        };
        let expected = Extents {
            excluded: extent(&|address| !policy.listing_of(address).excluded_by.is_empty()),
            blocked: extent(&|address| policy.listing_of(address).is_blocked()),
        };
        let findings = policy.findings(asked);
        prop_assert_eq!(findings.listing, expected);
        for list in &policy.lists {
            let found = findings.lists.iter().find(|found| found.list == list.name);
            let extent = extent(&|address| list.prefix_of(address).is_some());
            prop_assert_eq!(found.map(|found| found.extent), extent);
        }
    }
}
