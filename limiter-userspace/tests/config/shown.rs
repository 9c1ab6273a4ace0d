//! The output of `limiter check`.

use std::{fs, path::Path, process::Command};

use serde_json::json;

#[expect(clippy::unwrap_used, reason = "the binary was built for this test")]
fn check(arguments: &[&str]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/custom-limits.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn as_a_table() {
    let shown = check(&[]);
    let lines: Vec<String> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "id limit mode id format cost match burst count period one per overrides",
            "6 NewConnectionsPerIPv6Range enforce ipv6RangeCIDR /56 new-connections – 2 000 1 000 1 s 1 ms 0",
            "11 BytesPerSubscriber enforce regId bytes – 25 000 000 12 500 000 1 s 80 ns 1",
            "32 DnsPerAddress enforce ipAddress packets udp dport 53 to 192.0.2.53,2001:db8::53 \
             200 50 1 s 20 ms 2",
            "33 HttpsSynPerRange observe ipv4RangeCIDR /24 packets tcp dport 443,8443 flags \
             syn,!ack 600 100 1 s 10 ms 0",
            "34 Pings enforce total packets icmp-type echo-request 1 000 500 1 s 2 ms 0",
            "3 subscribers",
            "5 limits, 3 overrides; interfaces: eth0",
        ],
    );
}

#[test]
fn as_json() {
    let shown: serde_json::Value = serde_json::from_str(&check(&["--json"])).unwrap();
    assert_eq!(shown["subscribers"], 3);
    assert_eq!(shown["overrides"], 3);
    let range = &shown["limits"][0];
    assert_eq!(range["mode"], "enforce");
    assert_eq!(range["prefix_length"], 56);
    assert_eq!(range["match"], json!(null));
    let own = &shown["limits"][3];
    assert_eq!(own["mode"], "observe");
    assert_eq!(
        own["match"],
        json!({
            "protocols": [6],
            "source_ports": [],
            "destination_ports": [{"first": 443, "last": 443}, {"first": 8443, "last": 8443}],
            "tcp_flags": {"set": ["syn"], "clear": ["ack"]},
            "destinations": [],
            "fragments": "count",
        }),
    );
    assert_eq!(shown["limits"][2]["prefix_length"], json!(null));
    assert_eq!(
        shown["limits"][2]["match"]["destinations"],
        json!(["192.0.2.53/32", "2001:db8::53/128"]),
    );
}

/// Returns the output of `limiter check` for a configuration with lists: stdout, and warnings about
/// lists.
#[expect(clippy::unwrap_used, reason = "the binary was built for this test")]
fn check_lists(arguments: &[&str]) -> (String, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let yaml = "
lists:
  - {name: us, cidr: [10.0.0.0/8, 2001:db8::/32]}
  - {name: feed, file: feed.txt}
  - {name: unused, cidr: 192.0.2.1}
exclude: us
block: feed
limits:
  BytesPerSubscriber: {burst: 9000000, count: 9000000, period: 1s, exclude: feed}
subscribers: {1: 203.0.113.0/24}
";
    let entries: Vec<String> = (0..16).map(|host| format!("198.51.100.{host}")).collect();
    fs::write(directory.path().join("limiter.yaml"), yaml).unwrap();
    fs::write(
        directory.path().join("feed.txt"),
        format!("{}\n10.1.0.0/16\nnobody\n", entries.join("\n")),
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .args(arguments)
        .arg("limiter.yaml")
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let warnings = String::from_utf8(output.stderr).unwrap();
    let warnings = warnings.lines().map(ToOwned::to_owned);
    (
        String::from_utf8(output.stdout).unwrap(),
        warnings.collect(),
    )
}

#[test]
fn lists_as_a_table_and_warnings() {
    let (shown, warnings) = check_lists(&[]);
    let lines: Vec<String> = shown
        .lines()
        .skip(2)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "list IPv4 prefixes addresses IPv6 prefixes addresses used by",
            "us 1 16 777 216 1 ≥ 2^96 exclude",
            "feed 2 65 552 0 0 block, limits.BytesPerSubscriber.exclude",
            "unused 1 1 0 0",
            "1 subscriber",
            "1 limit, 0 overrides; interfaces: none named: give them with -i",
        ]
    );
    assert_eq!(
        warnings,
        [
            "warning: feed.txt:18: invalid entry: expected an address, prefix or range, \
             such as '192.0.2.1', '192.0.2.0/24' or '192.0.2.1-192.0.2.9'",
            "warning: nothing uses the list unused: no 'exclude', 'block', 'never-ban' or 'proven' of a 'standing' in use names it",
            "warning: the lists us (exclude) and feed (block) both have 10.1.0.0/16: exclude wins",
            "warning: the lists feed (block) and feed (limits.BytesPerSubscriber.exclude) both \
             have 10.1.0.0/16, 198.51.100.0/28: block wins",
        ]
    );
}

#[test]
fn lists_as_json() {
    let (shown, _) = check_lists(&["--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["exclude"], json!(["us"]));
    assert_eq!(shown["limits"][0]["exclude"], json!(["feed"]));
    let feed = &shown["lists"][1];
    assert_eq!(feed["ipv4_addresses"], 65_552);
    assert_eq!(feed["ipv6_prefixes"], 0);
    assert_eq!(
        feed["used_by"],
        json!([
            {"list": "feed", "purpose": "block", "limit": null},
            {"list": "feed", "purpose": "exclude", "limit": "BytesPerSubscriber"},
        ])
    );
    let file = &feed["files"][0];
    assert_eq!(
        (
            &file["path"],
            &file["format"],
            &file["entries"],
            &file["bad"]
        ),
        (&json!("feed.txt"), &json!("plain"), &json!(17), &json!(1))
    );
    assert_eq!(shown["overlaps"][0]["prefixes"], json!(["10.1.0.0/16"]));
    assert_eq!(shown["overlaps"][0]["holds"]["purpose"], "exclude");
}

/// Returns the output of `limiter check` about the sieves of a configuration.
#[expect(clippy::unwrap_used, reason = "the binary was built for this test")]
pub(crate) fn check_text(yaml: &str, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limiter.yaml");
    fs::write(&file, yaml).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn sieves_and_who_uses_them() {
    const YAML: &str = "
limits:
  All: {id: total, cost: packets, burst: 9, count: 90, period: 1m, ip-rep: main}
  Off: {id: total, cost: packets, burst: 9, count: 9, period: 1s, mode: off}
  PacketsPerIPAddress: {burst: 9, count: 9, period: 1s, ip-rep: other, metrics: {tag: x}}
ip-rep:
  - {name: main, buckets: 2, size: 4}
  - {name: none, pressure: {limit: All}}
  - {name: everything, size: 11, pressure: {packets-per-second: 5000}}
  - {name: other, size: 11, pressure: {limit: Off}}
";
    let shown = check_text(YAML, &[]);
    let lines: Vec<String> = shown
        .lines()
        .skip(5)
        // The remaining lines are about the machine that runs the check.
        .take(7)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let halves = "4 8 16 32 64 128 256 512 1 024 2 048";
    assert_eq!(
        lines,
        [
            "sieve buckets size percentage lists hold used by pressure by".to_owned(),
            "main 2 4 90 8 16 All 1.5 packets per second".to_owned(),
            "none 10 0 90 nobody: it is off, its size is 0 –".to_owned(),
            format!("everything 10 11 90 {halves} all packets 5 000 packets per second"),
            format!("other 10 11 90 {halves} PacketsPerIPAddress – (its limit is off)"),
            String::new(),
            "3 limits, 0 overrides; interfaces: none named: give them with -i".to_owned(),
        ]
    );
    let shown: serde_json::Value = serde_json::from_str(&check_text(YAML, &["--json"])).unwrap();
    // The same object as in `limiter sieve --json`.
    assert_eq!(shown["sieves"][0]["sieve"], "main");
    assert_eq!(shown["sieves"][0]["percentage"], 90.0);
    assert_eq!(shown["sieves"][0]["capacities"], json!([16, 8, 16]));
    assert_eq!(
        shown["sieves"][0]["uses"],
        json!([{"limit": "All", "cost": "packets", "limit_per_second": 1.5}])
    );
    assert_eq!(shown["sieves"][1]["on"], json!(false));
    assert_eq!(shown["limits"][0]["ip_rep"], "other");
    assert_eq!(shown["limits"][0]["metrics"]["tag"], "x");
}

/// Limits of every strategy.
const STRATEGIES: &str = "
limits:
  Bucket: {id: total, cost: packets, burst: 20, count: 10, period: 1m}
  Fixed: {id: total, cost: packets, strategy: fixed-window, rate: 10/minute; 100/2 hours}
  Moving: {id: total, cost: packets, strategy: moving-window, count: 10, period: 1m}
  Sliding: {id: ipAddress, cost: packets, strategy: sliding-window-counter}
overrides: {Sliding:10.0.0.1: {rate: 10/minute}}
";

#[test]
fn strategies_and_what_they_admit_at_worst() {
    let shown = check_text(STRATEGIES, &[]);
    let lines: Vec<String> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            "id limit mode id format cost strategy match burst count period one per at worst overrides",
            "32 Bucket enforce total packets gcra – 20 10 1 min 6 s 30 0",
            "33 Fixed enforce total packets fixed-window – – 10 1 min – 19 0",
            "34 Fixed#2 enforce total packets fixed-window – – 100 2 h – 199 0",
            "35 Moving enforce total packets moving-window – – 10 1 min – 10 0",
            "36 Sliding enforce ipAddress packets sliding-window-counter – – – – – – 1",
            "5 limits, 1 override; interfaces: none named: give them with -i",
        ]
    );
    let shown: serde_json::Value =
        serde_json::from_str(&check_text(STRATEGIES, &["--json"])).unwrap();
    let [bucket, fixed] = [&shown["limits"][0], &shown["limits"][1]];
    assert_eq!(bucket["strategy"], "gcra");
    assert_eq!(bucket["at_worst"], 30);
    assert_eq!(fixed["strategy"], "fixed-window");
    assert_eq!(fixed["burst"], json!(null));
    assert_eq!(fixed["count"], 10);
    assert_eq!(fixed["emission_interval_ns"], json!(null));
    assert_eq!(fixed["at_worst"], 19);
}

#[test]
fn rates_that_another_leaves_nothing_to_do() {
    let yaml = "
limits:
  Bucket: {id: total, cost: packets, rate: 10/minute; 10/hour}
  Fixed: {id: total, cost: packets, strategy: fixed-window, rate: 10/minute; 10/hour}
  Moving: {id: total, cost: packets, strategy: moving-window, rate: 2/second; 120/minute}
  Other: {id: total, cost: packets, rate: 2/second; 10/minute}
";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limiter.yaml");
    fs::write(&file, yaml).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_limiter"))
        .arg("check")
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success());
    let reported = String::from_utf8(output.stderr).unwrap();
    // Other warnings depend on the machine.
    let reported: Vec<_> = reported
        .lines()
        .filter(|line| line.contains("rate '"))
        .collect();
    assert_eq!(
        reported,
        [
            "warning: limit Bucket: the rate '10/minute' denies nothing that '10/hour' admits: \
             leave it out",
            "warning: limit Moving: the rate '120/minute' denies nothing that '2/second' admits: \
             leave it out",
        ]
    );
}
