//! The section `lists`, and the fields that name lists.

use std::{collections::BTreeMap, path::Path};

use jiff::{Timestamp, ToSpan as _};
use limiter_policy::{
    config,
    lists::{Bounds, Format, ListSource, WhenStale},
    policy::List,
};

use super::harness::{LIMIT, check, load};

fn list(name: &str, prefixes: &[&str]) -> List {
    let prefixes = prefixes.iter().map(|text| text.parse().expect("a prefix"));
    List {
        name: name.to_owned(),
        prefixes: prefixes.collect(),
    }
}

#[test]
fn lists_of_the_configuration_and_of_files() {
    let yaml = "
lists:
  - name: internal
    cidr: [192.168.0.0/16, 10.0.0.0/8, 192.168.7.0/24, 10.0.0.1]
  - {name: us, cidr: '2001:db8::1'}
  - name: feeds
    cidr: 198.51.100.0/25
    file: [one.netset, two.json]
    max-age: 24h
    when_stale: drop
  - {name: set, file: saved, format: ipset}
exclude: internal
block: [feeds, set]
limits:
  PacketsPerIPAddress: {burst: 5, count: 5, period: 1s, exclude: [us]}
  Dns:
    id: ipAddress
    cost: packets
    match: {destination-port: 53}
    block: set
";
    let config = load(&[
        ("limiter.yaml", yaml.as_bytes()),
        ("one.netset", b"# one\n198.51.100.128/25\n203.0.113.1\nwhat?\n203.0.113.2-203.0.113.9\n\
            203.0.113.16\n203.0.113.17\n203.0.113.18\n203.0.113.19\n203.0.113.20\n203.0.113.21\n203.0.113.22\n"),
        ("two.json", b"{\"cidr\": \"198.51.100.0/28\"}\n"),
        ("saved", b"create s hash:ip family inet6\nadd s 2001:db8::/48 timeout 3\n"),
    ])
    .unwrap();
    let policy = &config.policy;
    assert_eq!(
        policy.lists,
        [
            list("internal", &["10.0.0.0/8", "192.168.0.0/16"]),
            list("us", &["2001:db8::1/128"]),
            list(
                "feeds",
                &[
                    "198.51.100.0/24",
                    "203.0.113.1/32",
                    "203.0.113.2/31",
                    "203.0.113.4/30",
                    "203.0.113.8/31",
                    "203.0.113.16/30",
                    "203.0.113.20/31",
                    "203.0.113.22/32",
                ]
            ),
            list("set", &["2001:db8::/48"]),
        ]
    );
    assert_eq!(policy.exclude, ["internal"]);
    assert_eq!(policy.block, ["feeds", "set"]);
    let [built_in, dns] = policy.limits.as_slice() else {
        panic!("{:?}", policy.limits);
    };
    assert_eq!(
        (&built_in.exclude[..], &built_in.block[..]),
        (&["us".to_owned()][..], &[][..])
    );
    assert_eq!(dns.block, ["set"]);
    assert_eq!(dns.default, None, "a limit that blocks needs no rate");

    let feeds = &config.lists[2];
    assert_eq!(feeds.max_age_ns, Some(86_400_000_000_000));
    assert_eq!(feeds.when_stale, WhenStale::Drop);
    assert_eq!(config.lists[3].format, Format::Ipset);
    let reports: BTreeMap<&str, Vec<(Format, u64, u64)>> = config
        .feeds
        .iter()
        .map(|(name, feeds)| {
            let reports = feeds.iter().map(|feed| &feed.report);
            let reports = reports.map(|report| (report.format, report.entries, report.bad));
            (name.as_str(), reports.collect())
        })
        .collect();
    assert_eq!(
        reports,
        BTreeMap::from([
            (
                "feeds",
                vec![(Format::Plain, 10, 1), (Format::JsonLines, 1, 0)]
            ),
            ("set", vec![(Format::Ipset, 1, 0)]),
        ])
    );
    // Feeds are not watched as configuration files: a new feed is no new configuration.
    assert_eq!(config.files, ["limiter.yaml", "limiter.d"].map(Path::new));
}

#[test]
fn traffic_server_s_form() {
    let yaml = "lists:\n  - name: internal\n    cidr:\n      - 192.0.2.0/24\n      - 127.0.0.1\n";
    let config = load(&[(
        "limiter.yaml",
        format!("{LIMIT}{yaml}exclude: internal").as_bytes(),
    )]);
    let config = config.unwrap();
    assert_eq!(
        config.policy.lists,
        [list("internal", &["127.0.0.1/32", "192.0.2.0/24"])]
    );
    assert_eq!(
        config.lists,
        [ListSource {
            name: "internal".to_owned(),
            cidr: vec![
                "192.0.2.0/24".parse().unwrap(),
                "127.0.0.1/32".parse().unwrap()
            ],
            files: vec![],
            format: Format::Auto,
            max_age_ns: None,
            when_stale: WhenStale::Report,
            bounds: Bounds::default(),
        }]
    );
}

#[test]
fn a_policy_may_do_nothing_but_block() {
    check(
        "lists: [{name: all, cidr: [0.0.0.0/0, '::/0']}, {name: us, cidr: 192.0.2.1}]\n\
         block: all\nexclude: us\n",
        &[],
    );
    check(
        "lists: [{name: all, cidr: 0.0.0.0/0}]\n",
        &[" limits nothing: it needs a section 'limits', 'overrides', 'block', 'ip-rep' or 'bans'"],
    );
}

#[test]
fn what_is_wrong_with_lists() {
    check(
        &format!(
            "{LIMIT}lists:
  - {{name: a, cidr: [192.0.2.1/24, 192.0.2.0/33, nobody]}}
  - {{name: a, cidr: 192.0.2.1}}
  - {{name: b}}
  - {{name: c, cidr: []}}
  - {{cidr: 192.0.2.1}}
  - {{name: 9, cidr: 192.0.2.1}}
  - {{name: d, cidr: 192.0.2.1, format: plain, max-age: 1h, when-stale: drop}}
  - {{name: e, file: missing, format: netset, max-age: 1y, when-stale: keep}}
  - {{name: f, file: [x, x], when-stale: report}}
  - {{name: g, cird: 192.0.2.1, max-age: 1h, max_age: 2h, file: []}}
  - 192.0.2.0/24
  - {{name: h, cidr: 192.0.2.1, max-loss: 30%}}
  - {{name: i, file: x, max-loss: off, max-growth: 1, max-coverage: {{ipv4: 101%}}}}
"
        ),
        &[
            "3:22: invalid cidr '192.0.2.1/24', must have no host bits set, did you mean \
             '192.0.2.0/24'?",
            "3:36: invalid cidr '192.0.2.0/33', the prefix length of an IPv4 address is at \
             most 32",
            "3:50: invalid cidr 'nobody', expected an address or prefix, such as '192.0.2.0/24' \
             or '2001:db8::1'",
            "4:12: duplicate list 'a', first at 3:12",
            "5:5: missing field 'cidr' or 'file'",
            "6:21: no addresses or prefixes: name at least one",
            "7:5: missing field 'name'",
            "8:12: invalid name '9', expected a letter followed by up to 63 letters, digits, '-', \
             '_' or '.'",
            "9:40: 'format' has no effect without 'file'",
            "9:56: 'max-age' has no effect without 'file'",
            "9:72: 'when-stale' has no effect without 'file'",
            "10:21: the file 'missing' cannot be read: No such file or directory (os error 2)",
            "10:38: unknown format 'netset', must be one of auto, plain, json-lines, crowdsec, \
             ipset",
            "10:55: invalid max-age '1y', unknown unit 'y', must be one of ns, us, ms, s, m, h, d, \
             w",
            "10:71: unknown when-stale 'keep', must be one of report, drop",
            "11:22: the file 'x' cannot be read: No such file or directory (os error 2)",
            "11:25: duplicate file 'x', first at 11:22",
            "11:41: 'when-stale' has no effect without 'max-age'",
            "12:15: unknown field 'cird', did you mean 'cidr'?",
            "12:45: duplicate 'max-age', first at 12:32",
            "12:64: no files: name at least one",
            "13:5: expected a list with 'name' and 'cidr' or 'file', found the text '192.0.2.0/24'",
            "14:42: 'max-loss' has no effect without 'file'",
            "15:21: the file 'x' cannot be read: No such file or directory (os error 2)",
            "15:34: invalid max-loss 'off', expected a percentage from '0%' to '100%', with at most \
             four decimals, such as '0.5%'",
            "15:51: invalid max-growth '1', must be from 2 to 1000",
            "15:75: invalid max-coverage '101%', expected a percentage from '0%' to '100%', with at \
             most four decimals, such as '0.5%'",
        ],
    );
}

#[test]
fn what_is_wrong_with_their_names() {
    let lists = "lists: [{name: internal, cidr: 192.0.2.1}, {name: Broken, cidr: x}]\n";
    check(
        &format!(
            "{lists}exclude: [internal, intrenal, internal, Broken]
block: nobody
limits:
  PacketsPerIPAddress: {{burst: 5, count: 5, period: 1s, exclude: intern, block: []}}
  Own: {{id: total, cost: packets, block: {{internal: yes}}}}
"
        ),
        &[
            "1:65: invalid cidr 'x', expected an address or prefix, such as '192.0.2.0/24' or \
             '2001:db8::1'",
            "2:21: unknown list 'intrenal', did you mean 'internal'?",
            "2:31: duplicate list 'internal', first at 2:11",
            "3:8: unknown list 'nobody', must be one of internal, Broken",
            "5:66: unknown list 'intern', did you mean 'internal'?",
            "5:81: no lists: name at least one",
            "6:42: expected a list's name, an address or a prefix, found a mapping",
        ],
    );
    check(
        &format!("{LIMIT}exclude: internal\n"),
        &[
            "2:10: unknown list 'internal': define it in a section 'lists', such as [{name: ours, \
             cidr: [192.0.2.0/24]}], or give addresses in its place",
        ],
    );
    // An unreadable section may contain the list, so its use gets no error.
    check(
        &format!("{LIMIT}lists: 7\nexclude: internal\n"),
        &[
            "2:8: expected a list of lists, each with 'name' and 'cidr' or 'file', found the number '7'",
        ],
    );
    check(
        &format!("{LIMIT}list: []\nexclude: internal\n"),
        &["2:1: unknown field 'list', did you mean 'lists'?"],
    );
}

#[test]
fn a_feed_is_refused_at_first_and_kept_later() {
    let yaml = format!("{LIMIT}lists: [{{name: feed, file: feed.txt}}]\nblock: feed\n");
    let errors = load(&[
        ("limiter.yaml", yaml.as_bytes()),
        ("feed.txt", b"192.0.2.1\nnobody\n"),
    ]);
    assert_eq!(
        errors.unwrap_err(),
        [
            "limiter.yaml:2:28: the file 'feed.txt' is refused: 1 of 2 entries cannot be read, the \
             first in line 2: invalid entry: expected an address, prefix or range, such \
             as '192.0.2.1', '192.0.2.0/24' or '192.0.2.1-192.0.2.9'"
        ]
    );

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("limiter.yaml");
    let feed = directory.path().join("feed.txt");
    std::fs::write(&path, yaml).unwrap();
    std::fs::write(&feed, "192.0.2.1\n").unwrap();
    let first = config::load(&path, Timestamp::UNIX_EPOCH).unwrap();
    std::fs::write(&feed, "nobody\n").unwrap();
    assert!(config::load(&path, Timestamp::UNIX_EPOCH).is_err());
    let again = config::load_again(&path, &first.feeds, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(again.policy, first.policy);
    let warnings = again.feeds["feed"][0].report.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].ends_with(
            "feed.txt is refused: 1 of 1 entries cannot be read, the first in line 1: invalid \
             entry: expected an address, prefix or range, such as '192.0.2.1', \
             '192.0.2.0/24' or '192.0.2.1-192.0.2.9'; its previous content stays in force"
        ),
        "{warnings:?}"
    );
}

#[test]
fn a_feed_is_stale_by_the_time_that_is_given() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("limiter.yaml");
    let feed = directory.path().join("feed.txt");
    let yaml =
        "lists: [{name: feed, file: feed.txt, max-age: 1h, when-stale: drop}]\nblock: feed\n";
    std::fs::write(&path, yaml).unwrap();
    std::fs::write(&feed, "192.0.2.1\n").unwrap();
    let modified = feed.metadata().unwrap().modified().unwrap();
    let modified = Timestamp::try_from(modified).unwrap();
    for (now, held) in [(modified, 1), (modified + 2.hours(), 0)] {
        let config = config::load(&path, now).unwrap();
        assert_eq!(config.policy.lists[0].prefixes.len(), held, "{now}");
    }
}

#[test]
fn only_files_name_feed_files() {
    let text = format!("{LIMIT}lists: [{{name: feed, file: feed.txt}}]\n");
    let errors = config::parse(&text, "text").unwrap_err();
    assert_eq!(
        errors.to_string(),
        "text:2:28: cannot read the file 'feed.txt': only a configuration file can name other files"
    );
}

#[test]
fn addresses_in_place_of_lists() {
    let yaml = "
lists: [{name: ours, cidr: 192.0.2.0/24}]
exclude: 198.51.100.1
block: [ours, '2001:db8:1::/48', 203.0.113.0/25, 203.0.113.128/25]
never-ban: '2001:db8::1'
standing: {proven: [198.51.100.0/24]}
limits:
  PacketsPerIPAddress: {burst: 5, count: 5, period: 1s, exclude: 198.51.100.2}
";
    let config = load(&[("limiter.yaml", yaml.as_bytes())]).unwrap();
    let policy = &config.policy;
    assert_eq!(policy.exclude, ["(exclude)"]);
    assert_eq!(policy.block, ["ours", "(block)"]);
    assert_eq!(policy.never_ban, ["(never-ban)"]);
    assert_eq!(policy.limits[0].exclude, ["(PacketsPerIPAddress.exclude)"]);
    let prefixes = |name: &str| {
        let list = policy.list(name).unwrap();
        list.prefixes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(prefixes("(exclude)"), ["198.51.100.1/32"]);
    assert_eq!(prefixes("(block)"), ["203.0.113.0/24", "2001:db8:1::/48"]);
    assert_eq!(prefixes("(proven)"), ["198.51.100.0/24"]);
    // Each list keeps its source, for reloads and manifests.
    let names =
        |policy: &[List]| -> Vec<String> { policy.iter().map(|list| list.name.clone()).collect() };
    let sources: Vec<_> = config.lists.iter().map(|list| list.name.clone()).collect();
    assert_eq!(names(&policy.lists), sources);
    assert!(policy.listing_of([203, 0, 113, 200].into()).is_blocked());
}

#[test]
fn addresses_in_place_of_lists_are_checked() {
    check(
        &format!(
            "{LIMIT}exclude: [192.0.2.1/24, 10.0.0.0/33, 192.0.2.1, 192.0.2.1/32, 10, \
             '::ffff:192.0.2.1']\nblock:\n  - 2001:db8::\n"
        ),
        &[
            "2:11: invalid exclude '192.0.2.1/24', must have no host bits set, did you mean \
             '192.0.2.0/24'?",
            "2:25: invalid exclude '10.0.0.0/33', the prefix length of an IPv4 address is at most \
             32",
            "2:49: duplicate '192.0.2.1/32', first at 2:38",
            "2:63: invalid exclude '10', expected an address or prefix, such as '192.0.2.0/24' or \
             '2001:db8::1'",
            "2:67: invalid exclude '::ffff:192.0.2.1', which stands for an IPv4 address, did you \
             mean '192.0.2.1'?",
            "4:5: expected an address or prefix, such as '192.0.2.0/24' or '2001:db8::1', found a \
             mapping: put an address that ends in a colon in quotes: '2001:db8::'",
        ],
    );
}
