use std::net::Ipv4Addr;

use limiter_common::{limit::LimitId, strategy::Strategy};

use super::*;
use crate::policy::{
    BanMode, Escalation, List, Override, Percentage, PermaBlock, PressureOf, Reserved, Sieve,
    StandingSettings, TcpFlags,
};

fn rate(burst: u64) -> Rate {
    Rate {
        burst,
        count: 10,
        period_ns: 1_500_000_000,
    }
}

fn overridden(id: &str, burst: u64) -> Override {
    Override {
        id: id.parse().unwrap(),
        rate: rate(burst),
        comment: None,
    }
}

fn limit(name: &str) -> Limit {
    Limit {
        name: name.to_owned(),
        id: LimitId(32),
        id_format: IdFormat::IpAddress,
        cost: Cost::Packets,
        strategy: Strategy::Gcra,
        matching: Match::default(),
        mode: Mode::Enforce,
        reserve: None,
        ban: None,
        default: Some(rate(20)),
        overrides: vec![overridden("192.0.2.1", 1), overridden("192.0.2.2", 2)],
        exclude: vec![],
        block: vec![],
        ip_rep: None,
        ceiling: None,
        metrics: None,
    }
}

/// Checks the difference, as shown, that a change makes to a policy of one limit and one
/// subscriber.
#[track_caller]
fn check(change: impl FnOnce(&mut Policy), expected: &[&str]) {
    let old = Policy {
        subscribers: BTreeMap::from([(7, vec!["198.51.100.0/24".parse().unwrap()])]),
        ..Policy::from(vec![limit("Web")])
    };
    let mut new = old.clone();
    change(&mut new);
    let diff = Diff::between(&old, &new);
    let shown = diff.to_string();
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
    assert_eq!(diff.is_empty(), expected.is_empty());
}

#[test]
fn what_enforces_the_same_does_not_differ() {
    check(|_| {}, &[]);
    check(
        |policy| {
            // Another daemon may have interned the name with another id.
            policy.limits[0].id = LimitId(40);
            policy.limits[0].overrides[0].comment = Some("new".to_owned());
        },
        &[],
    );
}

#[test]
fn a_changed_rate_keeps_the_debt() {
    const KEPT: &str =
        "         buckets   stay; where a rate differs, as many tokens are owed as before";
    check(
        |policy| policy.limits[0].default = Some(rate(5)),
        &[
            "changed  limit Web",
            "         rate      {burst: 20, count: 10, period: 1500ms} → {burst: 5, count: 10, period: 1500ms}",
            KEPT,
        ],
    );
    check(
        |policy| policy.limits[0].default = None,
        &[
            "changed  limit Web",
            "         rate      {burst: 20, count: 10, period: 1500ms} → none",
            KEPT,
        ],
    );
    check(
        |policy| {
            policy.limits[0].overrides =
                vec![overridden("192.0.2.2", 3), overridden("2001:db8::/32", 4)];
        },
        &[
            "changed  limit Web",
            "         override  192.0.2.1      removed: {burst: 1, count: 10, period: 1500ms}",
            "         override  192.0.2.2      {burst: 2, count: 10, period: 1500ms} → {burst: 3, count: 10, period: 1500ms}",
            "         override  2001:db8::/32  added: {burst: 4, count: 10, period: 1500ms}",
            KEPT,
        ],
    );
}

#[test]
fn what_is_owed_in_other_tokens_is_forgotten() {
    check(
        |policy| policy.limits[0].cost = Cost::NewConnections,
        &[
            "changed  limit Web",
            "         cost      packets → new-connections",
            "         buckets   begin full",
        ],
    );
    check(
        |policy| {
            policy.limits[0].id_format = IdFormat::Ipv4RangeCidr { prefix_length: 24 };
            policy.limits[0].default = Some(rate(5));
        },
        &[
            "changed  limit Web",
            "         id        ipAddress → ipv4RangeCIDR /24",
            "         rate      {burst: 20, count: 10, period: 1500ms} → {burst: 5, count: 10, period: 1500ms}",
            "         buckets   begin full",
        ],
    );
}

#[test]
fn another_strategy_begins_anew() {
    const ANEW: &str = "         buckets   begin anew: what the old strategy counted is forgotten";
    check(
        |policy| {
            policy.limits[0].strategy = Strategy::FixedWindow;
            policy.limits[0].default = Some(rate(10));
            policy.limits[0].overrides = vec![
                overridden("192.0.2.1", 1),
                overridden("192.0.2.2", 10),
                overridden("192.0.2.3", 10),
            ];
        },
        &[
            "changed  limit Web",
            "         strategy  gcra → fixed-window",
            "         rate      {burst: 20, count: 10, period: 1500ms} → {count: 10, period: 1500ms}",
            "         override  192.0.2.2  {burst: 2, count: 10, period: 1500ms} → {count: 10, period: 1500ms}",
            "         override  192.0.2.3  added: {count: 10, period: 1500ms}",
            ANEW,
        ],
    );
    let old = Policy::from(vec![limit("Web"), limit("Dns"), limit("Gone")]);
    let mut new = Policy::from(vec![limit("Web"), limit("Dns"), limit("New")]);
    new.limits[0].default = None;
    assert_eq!(begun_anew(&old, &new), BegunAnew::default());
    new.limits[0].strategy = Strategy::MovingWindow;
    new.limits[2].strategy = Strategy::MovingWindow;
    assert_eq!(begun_anew(&old, &new).limits, ["Web"]);
}

#[test]
fn other_packets_or_another_mode_leave_the_buckets() {
    check(
        |policy| {
            policy.limits[0].mode = Mode::Observe;
            policy.limits[0].matching.tcp_flags = Some(TcpFlags {
                set: TcpFlags::SYN,
                clear: 0,
            });
        },
        &[
            "changed  limit Web",
            "         match     all → flags syn",
            "         mode      enforce → observe",
            "         buckets   stay as they are",
        ],
    );
}

#[test]
fn a_ban_leaves_the_buckets() {
    let ban = AutomaticBan {
        after: 1_000,
        within_ns: 10_000_000_000,
        for_ns: 600_000_000_000,
        at_most_ns: 600_000_000_000,
        escalate: Escalation::NONE,
        range_after: None,
        site_after: None,
        only: None,
        mode: BanMode::Observe,
    };
    check(
        |policy| policy.limits[0].ban = Some(ban),
        &[
            "changed  limit Web",
            "         ban       none → {after: 1000 drops, within: 10s, for: 10m, at-most: 10m, \
             escalate: 1, range-after: off, mode: observe}",
            "         buckets   stay as they are",
        ],
    );
}

#[test]
fn a_limit_that_goes_may_come_back() {
    check(
        |policy| policy.limits[0].name = "Www".to_owned(),
        &[
            "removed  limit Web",
            "         buckets   are set aside, for when the limit comes back",
            "added    limit Www",
            "         id        ipAddress",
            "         cost      packets",
            "         match     all",
            "         rate      {burst: 20, count: 10, period: 1500ms}",
            "         mode      enforce",
            "         override  192.0.2.1  added: {burst: 1, count: 10, period: 1500ms}",
            "         override  192.0.2.2  added: {burst: 2, count: 10, period: 1500ms}",
            "         buckets   begin full, or as they were if the limit comes back",
        ],
    );
}

#[test]
fn subscribers_and_what_is_malformed() {
    check(
        |policy| {
            policy.malformed = Action::Pass;
            policy.subscribers =
                BTreeMap::from([(7, vec!["198.51.100.0/25".parse().unwrap()]), (8, vec![])]);
        },
        &[
            "changed  subscriber 7",
            "         prefix    added: 198.51.100.0/25",
            "         prefix    removed: 198.51.100.0/24",
            "added    subscriber 8",
            "changed  malformed: drop → pass",
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
fn long_lists_are_cut() {
    let many = |policy: &mut Policy| {
        policy.limits[0].overrides = (0..100_000u32)
            .map(|number| overridden(&Ipv4Addr::from_bits(number << 4).to_string(), 9))
            .collect();
        policy.subscribers = (100..111).map(|number| (number, vec![])).collect();
    };
    let old = Policy::from(vec![limit("Web")]);
    let mut new = old.clone();
    many(&mut new);
    let diff = Diff::between(&old, &new);
    // The two old ones are removed.
    assert_eq!(diff.limits[0].overrides.len(), 100_002);
    let shown = diff.to_string();
    assert_eq!(shown.lines().count(), 1 + 10 + 1 + 1 + 10 + 1, "{shown}");
    assert!(
        shown.contains("         override  … and 99 992 more\n"),
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
    let terms = |mode| {
        serde_json::json!({
            "id": "ipAddress", "cost": "packets", "strategy": "gcra", "match": Match::default(), "mode": mode,
            "rate": {"burst": 20, "count": 10, "period_ns": 1_500_000_000},
            "exclude": [], "block": [],
        })
    };
    assert_eq!(
        serde_json::to_value(Diff::between(&old, &new)).unwrap(),
        serde_json::json!({
            "limits": [{
                "limit": "Web",
                "change": "changed",
                "old": terms("enforce"),
                "new": terms("off"),
                "parts": ["mode"],
                "overrides": [{"id": "192.0.2.2", "old": rate(2), "new": null}],
                "buckets": "debt-in-tokens",
            }],
            "subscribers": [],
            "sieves": [],
            "malformed": {"old": "drop", "new": "pass"},
            "lists": [{
                "list": "us", "change": "added", "added": ["192.0.2.0/24"], "removed": [],
            }],
            "exclude": null,
            "block": {"old": [], "new": ["us"]},
            "never_ban": null,
            "standing": null,
        })
    );
}

/// Checks the difference that a change makes to a sieve that a limit uses.
#[track_caller]
fn check_sieve(change: impl FnOnce(&mut Policy), expected: &[&str]) {
    let sieve = Sieve {
        name: "main".to_owned(),
        buckets: 10,
        size: 15,
        percentage: Percentage::default(),
        max_age_ns: 0,
        perma_block: PermaBlock::default(),
        ipv6_prefix: 128,
        pressure: None,
    };
    let mut old = Policy::from(vec![limit("Web")]);
    old.limits[0].ip_rep = Some("main".to_owned());
    old.sieves.push(sieve);
    let mut new = old.clone();
    change(&mut new);
    let shown = Diff::between(&old, &new).to_string();
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
}

#[test]
fn sieves_that_differ() {
    check_sieve(|_| (), &[]);
    check_sieve(
        |policy| policy.sieves[0].percentage = "87.5".parse().unwrap(),
        &[
            "changed  sieve main",
            "         ip-rep    {buckets: 10, size: 15, percentage: 90} → {buckets: 10, size: 15, percentage: 87.5}",
            "         lists     stay as they are",
        ],
    );
    check_sieve(
        |policy| {
            let sieve = &mut policy.sieves[0];
            sieve.size = 16;
            sieve.max_age_ns = 300_000_000_000;
            sieve.ipv6_prefix = 64;
            sieve.perma_block = PermaBlock {
                limit: 100,
                threshold: 1,
                max_age_ns: 1_000_000_000,
            };
            sieve.pressure = Some(PressureOf::PacketsPerSecond(5));
        },
        &[
            "changed  sieve main",
            "         ip-rep    {buckets: 10, size: 15, percentage: 90} → {buckets: 10, size: 16, percentage: 90, max-age: 5m, perma-block: {limit: 100, threshold: 1, max-age: 1s}, ipv6-prefix: 64, pressure: {packets-per-second: 5}}",
            "         lists     begin empty: they have other sizes",
        ],
    );
    check_sieve(
        |policy| {
            policy.sieves.clear();
            policy.limits[0].ip_rep = None;
            policy.limits[0].metrics = Some(FlatMetrics {
                prefix: "ddos".to_owned(),
                tag: "web".to_owned(),
            });
        },
        &[
            "changed  limit Web",
            "         ip-rep    main → none",
            "         metrics   none → {prefix: ddos, tag: web}",
            "         buckets   stay as they are",
            "removed  sieve main",
            "         lists     are forgotten",
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
        },
        &[
            "changed  limit Web",
            "         block     none → us",
            "         buckets   stay as they are",
            "added    list us",
            "         prefixes  +2 −0",
            "changed  exclude: none → us",
            "changed  never-ban: none → us",
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

/// Returns a reserve of so many tokens for all but unknown sources.
fn reserve(tokens: u64) -> Reserve {
    Reserve {
        familiar: Reserved::NOTHING,
        fresh: Reserved::NOTHING,
        retried: Reserved::NOTHING,
        unknown: Reserved::Tokens(tokens),
    }
}

#[test]
fn a_reserve_leaves_the_buckets() {
    let old = Policy::from(vec![Limit {
        reserve: Some(reserve(10)),
        ..limit("Web")
    }]);
    let mut new = old.clone();
    new.limits[0].reserve = Some(reserve(12));
    let diff = Diff::between(&old, &new).to_string();
    assert_eq!(
        diff,
        "changed  limit Web\n         reserve   {unknown: 10} → {unknown: 12}\n         buckets   \
         stay as they are\n"
    );
}

#[test]
fn the_first_limit_that_uses_standing_begins_with_nobody() {
    check(
        |policy| {
            policy.limits[0].reserve = Some(reserve(10));
        },
        &[
            "changed  limit Web",
            "         reserve   none → {unknown: 10}",
            "         buckets   stay as they are",
            "added    standing",
            "         capacity     1000000",
            "         ipv6-prefix  64",
            "         remember     720h",
            "         visits       {count: 3, apart: 1m}",
            "         retry        {after: 200ms, within: 10s}",
            "         proven-by    [handshake, list]",
            "         proven       []",
            "         known        begin with nobody",
        ],
    );
    // A section that nothing uses changes nothing.
    check(
        |policy| policy.standing = Some(StandingSettings::default()),
        &[],
    );
}

#[test]
fn what_known_sources_outlive() {
    let old = Policy::from(vec![Limit {
        reserve: Some(reserve(10)),
        ..limit("Web")
    }]);
    let check = |change: fn(&mut StandingSettings), expected: &[&str], fate| {
        let mut settings = StandingSettings::default();
        change(&mut settings);
        let new = Policy {
            standing: Some(settings),
            ..old.clone()
        };
        let shown = Diff::between(&old, &new).to_string();
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected, "\n{shown}");
        assert_eq!(begun_anew(&old, &new).known_sources, fate);
    };
    // What is left out has these values.
    check(|_| {}, &[], None);
    check(
        |settings| {
            settings.visits = None;
            settings.retry.within_ns = 5_000_000_000;
            settings.remember_ns = 3_600_000_000_000;
            // Within the same size of the table.
            settings.capacity = 1_048_576;
        },
        &[
            "changed  standing",
            "         capacity     1000000 → 1048576",
            "         remember     720h → 1h",
            "         visits       {count: 3, apart: 1m} → off",
            "         retry        {after: 200ms, within: 10s} → {after: 200ms, within: 5s}",
            "         known        stay, but for those that were not seen for `remember`",
        ],
        None,
    );
    let moved = "         known        move to a new table, as many as it has room for";
    check(
        |settings| settings.capacity = 1_048_577,
        &[
            "changed  standing",
            "         capacity     1000000 → 1048577",
            moved,
        ],
        Some(KnownFate::Moved),
    );
    check(
        |settings| settings.ipv6_prefix = 56,
        &["changed  standing", "         ipv6-prefix  64 → 56", moved],
        Some(KnownFate::Moved),
    );
    let longer = |ipv6_prefix| Policy {
        standing: Some(StandingSettings {
            ipv6_prefix,
            ..StandingSettings::default()
        }),
        ..old.clone()
    };
    let (short, long) = (longer(48), longer(49));
    let fate = begun_anew(&short, &long).known_sources;
    assert_eq!(fate, Some(KnownFate::OnlyIpv4));
    let shown = Diff::between(&short, &long).to_string();
    let told =
        "of IPv4 move to a new table, as many as it has room for; those of IPv6 are forgotten";
    assert!(shown.contains(told), "{shown}");
    let mut unused = old.clone();
    unused.limits[0].mode = Mode::Off;
    let shown = Diff::between(&old, &unused).to_string();
    let forgotten = "removed  standing\n         known        are forgotten: no limit uses standing any \
                     more\n";
    assert!(shown.ends_with(forgotten), "{shown}");
    let anew = begun_anew(&old, &unused);
    assert_eq!(anew.known_sources, Some(KnownFate::Forgotten));
}
